// Package kube reads a Kubernetes cluster: it has a client with a rate limit, and a cache of the
// relevant objects that watches keep up to date.
//
// [Open] reads a kubeconfig or the service account of a pod. [Watch] lists and watches
// each kind of object in the namespaces of the configuration and keeps of each object
// the fields of objects.go alone. A watch that ends, a resource version that expired
// and a server that is away are made up for in the background; [Cluster.Age] says how
// old what is kept may be, and no reader decides on what is too old.
//
//	client, err := kube.Open(kube.Config{Kubeconfig: file})
//	cluster := kube.Watch(ctx, client, []string{"shop"})
//	defer cluster.Close()
//	err = cluster.Ready(ctx)
//	for _, pod := range cluster.PodsOf(ref) { … }
//
// Errors of the server carry trimtab's kinds: [os.ErrNotExist] (404),
// [trimtab.ErrStale] (409), [trimtab.ErrRefused] (403 and 422).
//
// It uses client-go's dynamic client and reflectors. The typed clientset would add
// 40 MB to the program, so nothing may import it.
package kube
