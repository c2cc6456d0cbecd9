"""Custom resources: CustomResourceDefinitions, their schemas and validation rules, and serving their kinds."""
