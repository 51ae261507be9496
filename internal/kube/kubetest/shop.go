package kubetest

import "fmt"

// The paths of the objects that Shop creates.
const (
	Deployment = "/apis/apps/v1/namespaces/shop/deployments/checkout"
	replicaSet = "/apis/apps/v1/namespaces/shop/replicasets/checkout-7d9f"
	Node       = "/api/v1/nodes/n1"
)

// PodPath is the path of a pod of Shop.
func PodPath(i int) string {
	return fmt.Sprintf("/api/v1/namespaces/shop/pods/checkout-7d9f-%c%c", 'a'+rune(i/26), 'a'+rune(i%26))
}

// HalfCore are the resources of a container, for Shop.
const HalfCore = `{"requests":{"cpu":"100m"},"limits":{"cpu":"500m"}}`

// ShopFile is a configuration with the Deployment of Shop, of which nothing is known, and
// a default that may raise it. Its blanks are two directories, the kubeconfig, further keys
// of kubernetes, and the mode.
const ShopFile = `
pool: {cpu: 6, unit: 0.01, step: 1}
objective: egalitarian
round: 1s
lease: 10s
guard: {dead_band: 0.02, reversal_window: 0s}
analyzer: {report_interval: 500ms, partitions: 1}
actuator: {lock_dir: %q}
storage: {path: %q}
web: {listen_address: "127.0.0.1:0"}
otlp: {grpc: "off", http: "off"}
jaeger: {grpc: "off"}
kubernetes: {kubeconfig: %q%s}
workloads:
  - name: checkout
    slo: {latency: 100ms, fraction: 0.95}
    match: {kubernetes: {namespace: shop, deployment: checkout}}
    knob: {cpu: {min: 0.1, max: 2, default: 0.8}}
    mode: %s
`

// Shop makes a Deployment "checkout" in the namespace "shop" with that many running pods
// on the node n1 of 8 cores. Each has one container, "app", with these resources, written
// as JSON.
func (s *Server) Shop(pods int, resources string) {
	s.Put(Node, `{"kind":"Node","apiVersion":"v1","status":{"allocatable":{"cpu":"8","memory":"16Gi"}}}`)
	s.Put(Deployment, fmt.Sprintf(`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"generation":1},"spec":{"replicas":%[1]d,"selector":{"matchLabels":{"app":"checkout"}},"template":{"spec":{"containers":[{"name":"app","resources":%[2]s}]}}},"status":{"observedGeneration":1,"replicas":%[1]d,"updatedReplicas":%[1]d,"readyReplicas":%[1]d,"availableReplicas":%[1]d}}`, pods, resources))
	uid := func(path string) any { return Sub(s.Get(path), "metadata")["uid"] }
	s.Put(replicaSet, fmt.Sprintf(`{"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{"ownerReferences":[{"kind":"Deployment","name":"checkout","uid":%q,"controller":true}]}}`, uid(Deployment)))
	for i := range pods {
		s.Put(PodPath(i), fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"generation":1,"labels":{"app":"checkout"},"ownerReferences":[{"kind":"ReplicaSet","name":"checkout-7d9f","uid":%q,"controller":true}]},"spec":{"nodeName":"n1","containers":[{"name":"app","resources":%s}]}}`, uid(replicaSet), resources))
		s.Kubelet(PodPath(i))
	}
}

// Settle does the work of the controller after a change of replicas: all pods exist.
func (s *Server) Settle() {
	s.Edit(Deployment, func(o Object) {
		n, status := Sub(o, "spec")["replicas"], Sub(o, "status")
		for _, name := range []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"} {
			status[name] = n
		}
		status["observedGeneration"] = Sub(o, "metadata")["generation"]
	})
}
