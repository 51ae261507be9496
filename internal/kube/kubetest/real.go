//go:build integration

package kubetest

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"embed"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Real is a real control plane: etcd, kube-apiserver and kube-controller-manager, from
// what `make kube-tools` put into its cache.
type Real struct {
	t     testing.TB
	tools string
	dir   string
	url   string
	etcd  string
	lib   string
	// node starts the kubelet, once there is one.
	node    func() *os.Process
	kubelet *os.Process
}

// Tools finds what `make kube-tools` built, and skips the test where it is missing.
func Tools(t testing.TB) string {
	t.Helper()
	cache := os.Getenv("TRIMTAB_KUBE")
	if cache == "" {
		home, err := os.UserCacheDir()
		if err != nil {
			t.Skipf("no cache: %v", err)
		}
		cache = filepath.Join(home, "trimtab-kube")
	}
	found, err := filepath.Glob(filepath.Join(cache, "v*", "kube"))
	if err != nil || len(found) == 0 {
		t.Skipf("no Kubernetes in %s: run make kube-tools", cache)
	}
	return filepath.Dir(found[len(found)-1])
}

// StartReal starts a control plane without nodes; users are further users, each with a token
// equal to the name.
func StartReal(t testing.TB, users ...string) *Real {
	t.Helper()
	r := &Real{t: t, tools: Tools(t)}
	var err error
	if r.dir, err = os.MkdirTemp("", "kube"); err != nil { // short: names of sockets end at 108 bytes
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(r.dir) })
	r.lib = strings.Join(glob(r.tools, "debian/usr/lib/*-linux-gnu", "debian/lib/*-linux-gnu"), ":")
	etcd, peer, port := freePort(t), freePort(t), freePort(t)
	r.url, r.etcd = "https://127.0.0.1:"+port, "http://127.0.0.1:"+etcd
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	r.write("sa.key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	tokens := "admin,admin,1,\"system:masters\"\nmanager,system:kube-controller-manager,2\nnode,system:node:lab,3,\"system:nodes\"\n"
	for i, u := range users {
		tokens += fmt.Sprintf("%s,%s,%d\n", u, u, 10+i)
	}
	r.write("tokens", tokens)
	r.write("audit.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: None, userGroups: ['system:serviceaccounts:kube-system', 'system:nodes']}, {level: None, users: [admin, 'system:kube-controller-manager', 'system:apiserver']}, {level: Metadata}]\n")
	r.start("etcd", filepath.Join(r.tools, "debian/usr/bin/etcd"), "--data-dir", filepath.Join(r.dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", r.etcd, "--advertise-client-urls", r.etcd, "--listen-peer-urls", "http://127.0.0.1:"+peer,
		"--initial-advertise-peer-urls", "http://127.0.0.1:"+peer, "--initial-cluster", "default=http://127.0.0.1:"+peer, "--log-level", "warn")
	r.start("apiserver", filepath.Join(r.tools, "kube-apiserver"), "--etcd-servers", r.etcd, "--bind-address", "127.0.0.1", "--advertise-address", "10.255.255.1",
		"--secure-port", port, "--cert-dir", filepath.Join(r.dir, "pki"), "--service-cluster-ip-range", "10.96.0.0/16", "--authorization-mode", "Node,RBAC",
		"--token-auth-file", filepath.Join(r.dir, "tokens"), "--endpoint-reconciler-type", "none", "--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", filepath.Join(r.dir, "sa.key"), "--service-account-signing-key-file", filepath.Join(r.dir, "sa.key"),
		"--enable-priority-and-fairness=false", "--profiling=false", "--audit-log-path", filepath.Join(r.dir, "audit.log"), "--audit-policy-file", filepath.Join(r.dir, "audit.yaml"))
	r.until("the API server is ready", 4*time.Minute, func() bool { return r.try("", "get", "--raw", "/readyz") == nil })
	r.start("manager", filepath.Join(r.tools, "kube-controller-manager"), "--kubeconfig", r.Kubeconfig("manager"), "--leader-elect=false", "--use-service-account-credentials",
		"--service-account-private-key-file", filepath.Join(r.dir, "sa.key"), "--secure-port", "0", "--controllers=*,-node-lifecycle-controller", "--kube-api-qps=500", "--kube-api-burst=1000", "--concurrent-replicaset-syncs=20", "--horizontal-pod-autoscaler-sync-period=2s")
	return r
}

func glob(dir string, patterns ...string) (all []string) {
	for _, p := range patterns {
		found, _ := filepath.Glob(filepath.Join(dir, p)) // the patterns are right
		all = append(all, found...)
	}
	return all
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (r *Real) write(name, text string) string {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return file
}

// start starts a process that ends with the test.
func (r *Real) start(name string, args ...string) *os.Process {
	r.t.Helper()
	log, err := os.Create(filepath.Join(r.dir, name+".log"))
	if err != nil {
		r.t.Fatal(err)
	}
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+r.lib, "PATH="+r.tools+":"+filepath.Join(r.tools, "debian/usr/bin")+":"+filepath.Join(r.tools, "debian/usr/sbin")+":"+os.Getenv("PATH"))
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = c.Process.Kill() // on an error it has ended
		_ = c.Wait()
		_ = log.Close()
		if r.t.Failed() {
			b, _ := os.ReadFile(log.Name())
			r.t.Logf("%s: … %s", name, b[max(0, len(b)-1500):])
		}
	})
	return c.Process
}

// Kubeconfig writes a kubeconfig with which a client is the user, and returns its path.
func (r *Real) Kubeconfig(user string) string {
	r.t.Helper()
	return r.kubeconfig(user, user)
}

// Account writes the file of a ServiceAccount, with a token as its pods have one.
func (r *Real) Account(namespace, name string) string {
	r.t.Helper()
	return r.kubeconfig(namespace+"-"+name, strings.TrimSpace(r.Kubectl("-n", namespace, "create", "token", name)))
}

func (r *Real) kubeconfig(name, token string) string {
	r.t.Helper()
	return r.write(name+".conf", fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority":%q}}],"users":[{"name":"u","user":{"token":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`,
		r.url, filepath.Join(r.dir, "pki/apiserver.crt"), token))
}

func (r *Real) try(in string, args ...string) error {
	_, err := r.output(in, args...)
	return err
}

func (r *Real) output(in string, args ...string) (string, error) {
	c := exec.Command(filepath.Join(r.tools, "kubectl"), append([]string{"--kubeconfig", r.Kubeconfig("admin")}, args...)...)
	c.Stdin = strings.NewReader(in)
	var out, bad bytes.Buffer
	c.Stdout, c.Stderr = &out, &bad
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("kubectl %q: %w: %s", args, err, bad.String())
	}
	return out.String(), nil
}

// Try runs kubectl as admin with in as its input, and returns its output.
func (r *Real) Try(in string, args ...string) (string, error) { return r.output(in, args...) }

// Kubectl runs kubectl as admin.
func (r *Real) Kubectl(args ...string) string {
	r.t.Helper()
	out, err := r.output("", args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// Apply applies YAML.
func (r *Real) Apply(yaml string) {
	r.t.Helper()
	if err := r.try(yaml, "apply", "-f", "-"); err != nil {
		r.t.Fatal(err)
	}
}

// Rights gives the user trimtab the rights of deploy/kubernetes in the namespace shop, as seen from a
// package two folders down; where there is a kubelet, also the right to ask it for what pods use.
func (r *Real) Rights() {
	r.t.Helper()
	for _, file := range []string{"rbac-recommend.yaml", "rbac-act.yaml"} {
		b, err := os.ReadFile(filepath.Join("../../deploy/kubernetes", file))
		if err != nil {
			r.t.Fatal(err)
		}
		// The pod's account, as a user that a token of the test's stands for.
		text := strings.NewReplacer("namespace: default", "namespace: shop",
			"{kind: ServiceAccount, name: trimtab, namespace: trimtab}", "{kind: User, name: trimtab, apiGroup: rbac.authorization.k8s.io}").Replace(string(b))
		if r.kubelet != nil {
			text = strings.ReplaceAll(text, `# - {apiGroups: [""], resources: [nodes/stats]`, `- {apiGroups: [""], resources: [nodes/stats]`)
		}
		r.Apply(text)
	}
}

// Until waits for a minute at most.
func (r *Real) Until(what string, true func() bool) {
	r.t.Helper()
	r.until(what, time.Minute, true)
}

func (r *Real) until(what string, most time.Duration, true func() bool) {
	r.t.Helper()
	deadline := time.After(most)
	for !true() {
		select {
		case <-deadline:
			r.t.Fatalf("not within %v: %s", most, what)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Shop makes the Deployment checkout in the namespace shop, on a node of 8 cores whose kubelet
// only [Real.Run] simulates.
func (r *Real) Shop(replicas int, resources string) {
	r.t.Helper()
	r.Apply("apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {kubernetes.io/os: linux}}\n")
	r.Kubectl("patch", "node", "n1", "--subresource=status", "--type=merge", "-p", `{"status":{"allocatable":{"cpu":"8","memory":"16Gi","pods":"100"},"capacity":{"cpu":"8","memory":"16Gi","pods":"100"}}}`)
	r.deploy(replicas, "n1", "none", resources)
	r.Run(replicas)
}

// namespaces makes those of the tests, and waits until pods can be made in them.
func (r *Real) namespaces() {
	r.t.Helper()
	r.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: trimtab}\n")
	r.until("the service account is there", time.Minute, func() bool { return r.try("", "-n", "shop", "get", "serviceaccount", "default") == nil })
}

// deploy makes the Deployment checkout in the namespace shop.
func (r *Real) deploy(replicas int, node, image, resources string) {
	r.t.Helper()
	r.namespaces()
	r.Apply(r.filled("checkout.yaml", map[string]string{"REPLICAS": strconv.Itoa(replicas), "NODE": node, "IMAGE": image, "RESOURCES": resources,
		"HOST": strconv.FormatBool(node == NodeName)}))
}

//go:embed files
var files embed.FS

// filled is one of the files, with DIR, TOOLS and the given values in place of ${NAME}.
func (r *Real) filled(name string, values map[string]string) string {
	r.t.Helper()
	b, err := files.ReadFile("files/" + name)
	if err != nil {
		r.t.Fatal(err)
	}
	pairs := []string{"${DIR}", r.dir, "${TOOLS}", r.tools}
	for key, value := range values {
		pairs = append(pairs, "${"+key+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(string(b))
}

// Run simulates the kubelet until the given number of pods run as their specs say.
func (r *Real) Run(pods int) {
	r.t.Helper()
	r.until(fmt.Sprintf("%d pods", pods), time.Minute, func() bool {
		var list struct{ Items []Object }
		if json.Unmarshal([]byte(r.Kubectl("-n", "shop", "get", "pod", "-l", "app=checkout", "-o", "json")), &list) != nil || len(list.Items) != pods {
			return false
		}
		for _, pod := range list.Items {
			r.Kubelet(pod)
		}
		return true
	})
}

// Kubelet simulates the kubelet for one pod.
func (r *Real) Kubelet(pod Object) {
	r.t.Helper()
	m := Sub(pod, "metadata")
	app := Container(pod, "app")
	now := time.Now().UTC().Format(time.RFC3339)
	status := Object{"status": Object{
		"phase": "Running", "observedGeneration": m["generation"],
		"conditions": []any{Object{"type": "Ready", "status": "True", "lastTransitionTime": now}, Object{"type": "ContainersReady", "status": "True", "lastTransitionTime": now}},
		"containerStatuses": []any{Object{"name": "app", "image": "none", "imageID": "", "ready": true, "started": true, "restartCount": 0, "resources": app["resources"], "allocatedResources": Sub(app, "resources", "requests"),
			"state": Object{"running": Object{"startedAt": now}}}},
	}}
	b, err := json.Marshal(status)
	if err != nil {
		r.t.Fatal(err)
	}
	_, err = r.output("", "-n", "shop", "patch", "pod", fmt.Sprint(m["name"]), "--subresource=status", "--type=merge", "-p", string(b))
	if err != nil && !strings.Contains(err.Error(), "(NotFound)") { // it may have been removed since the listing
		r.t.Fatal(err)
	}
}

// Pods lists the pods of the Deployment.
func (r *Real) Pods() []Object {
	r.t.Helper()
	var list struct{ Items []Object }
	if err := json.Unmarshal([]byte(r.Kubectl("-n", "shop", "get", "pod", "-l", "app=checkout", "-o", "json")), &list); err != nil {
		r.t.Fatal(err)
	}
	return list.Items
}

// Wrote lists the requests of a user other than reads, as "VERB RESOURCE/SUBRESOURCE CODE", from
// the server's audit log.
func (r *Real) Wrote(user string) (all []string) {
	r.t.Helper()
	for _, e := range r.audited(user) {
		if e.Verb == "get" || e.Verb == "list" || e.Verb == "watch" {
			continue
		}
		all = append(all, fmt.Sprintf("%s %s/%s %d", e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ResponseStatus.Code))
	}
	return all
}

// audit is a line of the server's audit log.
type audit struct {
	Stage, Verb, RequestURI  string
	User                     struct{ Username string }
	ObjectRef                struct{ Resource, Subresource string }
	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
}

// audited lists the requests of a user.
func (r *Real) audited(user string) (all []audit) {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, "audit.log"))
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var e audit
		if json.Unmarshal(line, &e) == nil && e.User.Username == user {
			all = append(all, e)
		}
	}
	return all
}
