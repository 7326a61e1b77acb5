[ -e /sbin/mount.@HELPER@ ] || install @PACKAGE@
