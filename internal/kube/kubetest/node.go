//go:build integration

package kubetest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// LabImage is the one image that a node has: a program that waits.
const LabImage = "localhost/lab:1"

// labGroup is the group below which everything of the node is.
const labGroup = "trimtab-lab"

// NodeName is the real node's.
const NodeName = "lab"

// Node starts containerd and a kubelet on this host, as root, in a mount namespace of
// their own: all that they mount ends with them. Their groups are below /trimtab-lab.
func (r *Real) Node() {
	r.t.Helper()
	if os.Geteuid() != 0 {
		r.t.Skip("a kubelet needs root")
	}
	r.keepSysctls()
	for _, dir := range []string{"containerd", "kubelet", "cni", "var"} {
		if err := os.MkdirAll(filepath.Join(r.dir, dir), 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
	r.write("cni/10-lab.conflist", `{"cniVersion":"0.4.0","name":"lab","plugins":[{"type":"ptp","ipam":{"type":"host-local","subnet":"10.88.0.0/24","dataDir":"`+r.dir+`/cni-state"}}]}`)
	r.groups()
	socket := filepath.Join(r.dir, "c.sock")
	values := map[string]string{"SOCKET": socket, "GROUP": labGroup, "IMAGE": LabImage}
	containerd := r.start("containerd", "unshare", "-m", "--propagation", "private", "containerd", "-c", r.write("containerd.toml", r.filled("containerd.toml", values)))
	ctr := func(args ...string) error {
		return r.tool("ctr", append([]string{"-a", socket, "-n", "k8s.io"}, args...)...)
	}
	r.until("containerd answers", time.Minute, func() bool { return ctr("version") == nil })
	if err := ctr("image", "import", "--snapshotter", "native", r.image()); err != nil {
		r.t.Fatal(err)
	}
	r.node = func() *os.Process {
		values["PORT"] = freePort(r.t)
		return r.start("kubelet", "nsenter", "-t", strconv.Itoa(containerd.Pid), "-m", filepath.Join(r.tools, "kubelet"), "--config", r.write("kubelet.yaml", r.filled("kubelet.yaml", values)),
			"--kubeconfig", r.Kubeconfig("node"), "--hostname-override", NodeName, "--root-dir", filepath.Join(r.dir, "kubelet"), "--cert-dir", filepath.Join(r.dir, "kubelet/pki"))
	}
	r.kubelet = r.node()
	r.t.Cleanup(func() { r.endNode(r.kubelet, containerd, socket) })
	r.ready()
}

func (r *Real) ready() {
	r.t.Helper()
	r.until("the node is ready", 2*time.Minute, func() bool {
		out, err := r.output("", "get", "node", NodeName, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		return err == nil && out == "True"
	})
}

// RestartKubelet kills the kubelet of [Real.Node] and starts it again, and waits until it has
// reported the node. It handles earlier requests 30 s after its start.
func (r *Real) RestartKubelet() {
	r.t.Helper()
	_ = r.kubelet.Kill() // its end is waited for by whoever started it
	began := time.Now()
	r.kubelet = r.node()
	r.until("the kubelet has told of the node", 2*time.Minute, func() bool {
		out, err := r.output("", "get", "node", NodeName, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].lastHeartbeatTime}`)
		told, bad := time.Parse(time.RFC3339, out)
		return err == nil && bad == nil && told.After(began)
	})
}

// Group has the control groups of a container on this host, one in each hierarchy that the node uses.
type Group struct {
	t    testing.TB
	dirs []string
}

// Group finds the groups of a pod's container.
func (r *Real) Group(pod Object) *Group {
	r.t.Helper()
	status := Sub(pod, "status")["containerStatuses"].([]any)[0].(Object)
	_, id, _ := strings.Cut(fmt.Sprint(status["containerID"]), "://")
	g := &Group{t: r.t}
	for _, pattern := range []string{"/sys/fs/cgroup/" + labGroup, "/sys/fs/cgroup/*/" + labGroup} {
		roots, _ := filepath.Glob(pattern) // the pattern is right
		for _, root := range roots {
			_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() && d.Name() == id {
					g.dirs = append(g.dirs, path)
				}
				return nil // what went meanwhile is gone
			})
		}
	}
	return g
}

// read returns the first of some files that there is, and its content.
func (g *Group) read(names ...string) (file, text string) {
	g.t.Helper()
	for _, dir := range g.dirs {
		for _, name := range names {
			file := filepath.Join(dir, name)
			if b, err := os.ReadFile(file); err == nil {
				return file, strings.TrimSpace(string(b))
			}
		}
	}
	g.t.Fatalf("the groups %q have none of %q", g.dirs, names)
	return "", ""
}

// Read returns the content of the first of some files that there is.
func (g *Group) Read(names ...string) string {
	g.t.Helper()
	_, text := g.read(names...)
	return text
}

// Take has the container allocate 100 MiB, and keep them.
func (g *Group) Take() {
	g.t.Helper()
	for _, line := range strings.Fields(g.Read("cgroup.procs")) {
		if pid, err := strconv.Atoi(line); err == nil {
			_ = syscall.Kill(pid, syscall.SIGUSR1) // its use tells
		}
	}
}

// Killed tells when the kernel has killed a process of the container, to 5 ms.
func (g *Group) Killed() <-chan time.Time {
	g.t.Helper()
	file, _ := g.read("memory.events", "memory.oom_control")
	at := make(chan time.Time, 1)
	go func() {
		for g.t.Context().Err() == nil {
			b, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(b), "oom_kill 0") { // a group whose processes are gone is removed
				at <- time.Now()
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return at
}

// KubeletCA is a file with the authority that the kubelet of [Real.Node] made for its own certificate.
func (r *Real) KubeletCA() string { return filepath.Join(r.dir, "kubelet/pki/kubelet.crt") }

// keepSysctls restores the sysctls that the kubelet sets for the whole host.
func (r *Real) keepSysctls() {
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"} {
		file := "/proc/sys/" + name
		if b, err := os.ReadFile(file); err == nil {
			r.t.Cleanup(func() { _ = os.WriteFile(file, b, 0o644) })
		}
	}
}

// groups makes the group of the node in each hierarchy that there is.
func (r *Real) groups() {
	for _, h := range []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "devices", "freezer", "blkio", "systemd", "hugetlb"} {
		dir := filepath.Join("/sys/fs/cgroup", h)
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err != nil {
			continue
		}
		_ = os.MkdirAll(filepath.Join(dir, labGroup), 0o755) // on an error the kubelet says what is missing
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		if b, err := os.ReadFile(filepath.Join("/sys/fs/cgroup/cpuset", file)); err == nil {
			_ = os.WriteFile(filepath.Join("/sys/fs/cgroup/cpuset", labGroup, file), b, 0o644)
		}
	}
}

// tool runs a program of the tools.
func (r *Real) tool(name string, args ...string) error {
	c := exec.Command(filepath.Join(r.tools, "debian/usr/bin", name), args...)
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+r.lib)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w: %s", name, args, err, out)
	}
	return nil
}

// endNode ends kubelet, containers and containerd, in this order: shims outlive their
// containerd.
func (r *Real) endNode(kubelet, containerd *os.Process, socket string) {
	_ = r.try("", "delete", "pod,deployment", "--all", "--all-namespaces", "--grace-period=0", "--force", "--wait=false")
	_ = kubelet.Kill()
	list := func(what string) []string {
		c := exec.Command(filepath.Join(r.tools, "debian/usr/bin/ctr"), "-a", socket, "-n", "k8s.io", what, "ls", "-q")
		c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+r.lib)
		out, _ := c.Output()
		return strings.Fields(string(out))
	}
	for _, id := range list("task") {
		_ = r.tool("ctr", "-a", socket, "-n", "k8s.io", "task", "rm", "-f", id)
	}
	for _, id := range list("container") {
		_ = r.tool("ctr", "-a", socket, "-n", "k8s.io", "container", "rm", id)
	}
	_ = containerd.Kill()
	r.until("the groups of the node are gone", 20*time.Second, func() bool {
		for _, pid := range shims(socket) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		out, _ := exec.Command("find", "/sys/fs/cgroup", "-depth", "-type", "d", "-path", "*/"+labGroup+"*").Output()
		groups := strings.Fields(string(out))
		for _, group := range groups {
			// A pod that came after the lists above has processes without anybody who ends them.
			members, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
			for _, m := range strings.Fields(string(members)) {
				if pid, err := strconv.Atoi(m); err == nil && pid > 1 {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			_ = os.Remove(group) // groups in use are removed at the next try
		}
		return len(groups) == 0
	})
}

// shims returns the processes that keep containers of this containerd.
func shims(socket string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		b, err := os.ReadFile(file)
		if err == nil && bytes.Contains(b, []byte("containerd-shim")) && bytes.Contains(b, []byte(socket)) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// image writes an archive with [LabImage], in the layout of OCI.
func (r *Real) image() string {
	r.t.Helper()
	source := r.write("main.go", r.filled("wait.go.txt", nil))
	program := filepath.Join(r.dir, "wait")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		r.t.Fatalf("build the program of the image: %v: %s", err, out)
	}
	body, err := os.ReadFile(program)
	if err != nil {
		r.t.Fatal(err)
	}
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	blob := func(kind string, b []byte) Object {
		digest := fmt.Sprintf("%x", sha256.Sum256(b))
		files["blobs/sha256/"+digest] = b
		return Object{"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + digest, "size": len(b)}
	}
	text := func(o Object) []byte {
		b, err := json.Marshal(o)
		if err != nil {
			r.t.Fatal(err)
		}
		return b
	}
	layer := blob("layer.v1.tar", archive(map[string][]byte{"wait": body}))
	config := blob("config.v1+json", text(Object{"architecture": runtime.GOARCH, "os": "linux", "config": Object{"Entrypoint": []string{"/wait"}}, "rootfs": Object{"type": "layers", "diff_ids": []any{layer["digest"]}}}))
	manifest := blob("manifest.v1+json", text(Object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": []any{layer}}))
	manifest["annotations"] = Object{"io.containerd.image.name": LabImage, "org.opencontainers.image.ref.name": LabImage}
	files["index.json"] = text(Object{"schemaVersion": 2, "manifests": []any{manifest}})
	return r.write("lab.tar", string(archive(files)))
}

// archive is files as tar.
func archive(files map[string][]byte) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, body := range files {
		_ = w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(body))}) // into memory
		_, _ = w.Write(body)
	}
	_ = w.Close()
	return out.Bytes()
}

// RunHere makes the Deployment checkout in the namespace shop with real pods on this
// host.
func (r *Real) RunHere(replicas int, resources string) {
	r.t.Helper()
	r.deploy(replicas, NodeName, LabImage, resources)
	r.until("the pods run", 2*time.Minute, func() bool {
		out, err := r.output("", "-n", "shop", "get", "deployment", "checkout", "-o", "jsonpath={.status.availableReplicas}")
		return err == nil && out == strconv.Itoa(replicas)
	})
}
