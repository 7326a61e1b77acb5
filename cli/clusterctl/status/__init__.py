"""What a cluster does now: asked of AWS and of the nodes, judged, added up."""
