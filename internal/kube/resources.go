package kube

// The resources that are asked for.

func pods() Resource          { return Resource{"", "v1", "pods", true} }
func nodes() Resource         { return Resource{"", "v1", "nodes", false} }
func quotas() Resource        { return Resource{"", "v1", "resourcequotas", true} }
func ranges() Resource        { return Resource{"", "v1", "limitranges", true} }
func configMaps() Resource    { return Resource{"", "v1", "configmaps", true} }
func deployments() Resource   { return Resource{"apps", "v1", "deployments", true} }
func statefulsets() Resource  { return Resource{"apps", "v1", "statefulsets", true} }
func replicasets() Resource   { return Resource{"apps", "v1", "replicasets", true} }
func hpas() Resource          { return Resource{"autoscaling", "v2", "horizontalpodautoscalers", true} }
func budgets() Resource       { return Resource{"policy", "v1", "poddisruptionbudgets", true} }
func vpas() Resource          { return Resource{"autoscaling.k8s.io", "v1", "verticalpodautoscalers", true} }
func scaledObjects() Resource { return Resource{"keda.sh", "v1alpha1", "scaledobjects", true} }
