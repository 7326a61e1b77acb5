"""The AWS APIs that the stand-in answers; those of EC2, IAM and STS by botocore's own models of them."""
