"""Stand-ins for FSx, EFS, S3 and instance-store disks in a rehearsal's machines."""
