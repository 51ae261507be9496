//go:build integration

package kubetest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Kwok plays the kubelets of all nodes. The test is skipped where `make kube-tools` did
// not build it.
func (r *Real) Kwok() {
	r.t.Helper()
	program := filepath.Join(r.tools, "kwok")
	if _, err := os.Stat(program); err != nil {
		r.t.Skipf("no kwok: run make kube-tools: %v", err)
	}
	r.start("kwok", program, "--kubeconfig", r.Kubeconfig("admin"), "--config", r.write("stages.yaml", r.filled("stages.yaml", nil)), "--manage-all-nodes", "--node-lease-duration-seconds", "0")
}

// Crowd creates nodes of 16 cores and Deployments svc-0000, ... in the namespace shop, each with
// the given number of pods of half a core, and waits until all run.
func (r *Real) Crowd(nodes, workloads, pods int) {
	r.t.Helper()
	r.namespaces()
	room := Object{"cpu": "16", "memory": "64Gi", "pods": "110"}
	r.create("/api/v1/nodes", nodes, func(i int) Object {
		return Object{"apiVersion": "v1", "kind": "Node", "metadata": Object{"name": fmt.Sprintf("n%04d", i), "labels": Object{"kubernetes.io/os": "linux"}},
			"status": Object{"allocatable": room, "capacity": room}}
	})
	r.create("/apis/apps/v1/namespaces/shop/deployments", workloads, func(i int) Object {
		name := CrowdName(i)
		app := Object{"app": name}
		resources := Object{"requests": Object{"cpu": "100m", "memory": "32Mi"}, "limits": Object{"cpu": "500m", "memory": "64Mi"}}
		return Object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": Object{"name": name}, "spec": Object{
			"replicas": pods, "selector": Object{"matchLabels": app}, "template": Object{"metadata": Object{"labels": app}, "spec": Object{
				"nodeName": fmt.Sprintf("n%04d", i%nodes), "terminationGracePeriodSeconds": 0, "tolerations": []any{Object{"operator": "Exists"}},
				"containers": []any{Object{"name": "app", "image": "none", "resources": resources}}}}}}
	})
	want := strconv.Itoa(workloads * pods)
	r.until(want+" pods run", 4*time.Minute, func() bool {
		time.Sleep(2 * time.Second)
		out, err := r.output("", "-n", "shop", "get", "deployments", "-o", `jsonpath={range .items[*]}{.status.availableReplicas}{"\n"}{end}`)
		sum := 0
		for line := range bytes.Lines([]byte(out)) {
			n, _ := strconv.Atoi(string(bytes.TrimSpace(line))) // empty while there is none
			sum += n
		}
		return err == nil && strconv.Itoa(sum) == want
	})
}

// CrowdName is the name of a Deployment of [Real.Crowd].
func CrowdName(i int) string { return fmt.Sprintf("svc-%04d", i) }

// create makes many objects, as admin, without the pauses that kubectl makes.
func (r *Real) create(path string, n int, object func(i int) Object) {
	r.t.Helper()
	ca, err := os.ReadFile(filepath.Join(r.dir, "pki/apiserver.crt"))
	if err != nil {
		r.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	next := make(chan int)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range next {
				if err := r.post(client, path, object(i)); err != nil {
					r.t.Error(err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

func (r *Real) post(client *http.Client, path string, o Object) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	q, err := http.NewRequest(http.MethodPost, r.url+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	q.Header.Set("Authorization", "Bearer admin")
	q.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(answer.Body)
		return fmt.Errorf("create %s: %s: %.300s", path, answer.Status, text)
	}
	return nil
}

// Asked counts the requests of a user that ended within a time, by "VERB RESOURCE/SUBRESOURCE".
// A watch counts when it begins.
func (r *Real) Asked(user string, from, to time.Time) map[string]int {
	r.t.Helper()
	out := map[string]int{}
	for _, e := range r.audited(user) {
		if e.Stage == "ResponseComplete" && e.Verb == "watch" || e.RequestReceivedTimestamp.Before(from) || !e.RequestReceivedTimestamp.Before(to) {
			continue
		}
		name := e.Verb + " " + e.ObjectRef.Resource
		if e.ObjectRef.Resource == "" {
			name = e.Verb + " " + e.RequestURI
		}
		if e.ObjectRef.Subresource != "" {
			name += "/" + e.ObjectRef.Subresource
		}
		out[name]++
	}
	return out
}
