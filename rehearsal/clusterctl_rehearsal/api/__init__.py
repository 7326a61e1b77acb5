"""The AWS APIs that clusterctl calls through boto3, spoken from botocore's own models."""
