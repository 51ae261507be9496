package cluster

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/internal/cluster/clustertest"
	"github.com/trimtab/trimtab/internal/loopback"
)

func three() Spec {
	return Spec{Servers: []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, Hosts: []string{"h1", "h2"}, Pool: "p"}
}

func TestPrivateKeysAreForTheirOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	if err := three().Write(dir); err != nil {
		t.Fatal(err)
	}
	keys := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(b), "PRIVATE KEY") {
			return err
		}
		info, err := d.Info()
		if keys++; err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil || keys != 1+3+7 {
		t.Errorf("%d keys, want one of the authority, of 3 servers and of 7 users: %v", keys, err)
	}
}

func TestASiteThatIsWrittenAgainKeepsItsCertificatesAndGetsWhatIsNew(t *testing.T) {
	dir := t.TempDir()
	s := three()
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	names := []string{"ca.pem", "ca-key.pem", "planner/cert.pem", "agent-h1/key.pem", "nats-127.0.0.1/cert.pem"}
	before := map[string]string{}
	for _, n := range names {
		before[n] = read(n)
	}
	s.Hosts = append(s.Hosts, "h3")
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if read(n) != before[n] {
			t.Errorf("%s changed", n)
		}
	}
	if read("agent-h3/cert.pem") == "" || !strings.Contains(read("nats-127.0.0.3/nats-server.conf"), "h3.agent.trimtab") {
		t.Error("the new host is not there")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(read("ca.pem")))
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "agent-h3/cert.pem"), filepath.Join(dir, "agent-h3/key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
		t.Error("the certificate of an agent is good for a server")
	}
}

func TestASiteThatCannotBeIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"two servers":     func(s *Spec) { s.Servers = s.Servers[:2] },
		"no server":       func(s *Spec) { s.Servers = nil },
		"no host":         func(s *Spec) { s.Hosts = nil },
		"a host twice":    func(s *Spec) { s.Hosts = []string{"a", "A"} },
		"a path":          func(s *Spec) { s.Hosts = []string{"../a"} },
		"a wildcard":      func(s *Spec) { s.Hosts = []string{"*"} },
		"a quote":         func(s *Spec) { s.Servers = []string{`a"`} },
		"no pool":         func(s *Spec) { s.Pool = "" },
		"an empty server": func(s *Spec) { s.Servers = []string{""} },
	} {
		s := three()
		change(&s)
		dir := t.TempDir()
		if err := s.Write(dir); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if files, _ := os.ReadDir(dir); len(files) > 0 {
			t.Errorf("%s: files were written", name)
		}
	}
}

func TestSystemdVerifiesTheUnitsAndCentralStagesHaveNoPrivilege(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := three().Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, u := range units() {
		text := u.text()
		for _, want := range []string{"\nCapabilityBoundingSet=\n", "\nAmbientCapabilities=\n", "\nNoNewPrivileges=yes\n", "\nProtectSystem=strict\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q", u.name(), want)
			}
		}
		central := u.Role != natsbus.Agent
		if strings.Contains(text, "\nDynamicUser=yes\n") != central || strings.Contains(text, "\nProtectControlGroups=yes\n") != central || strings.Contains(text, "ReadWritePaths=") == central {
			t.Errorf("%s may do too much or too little:\n%s", u.name(), text)
		}
		if _, err := exec.LookPath("systemd-analyze"); err != nil {
			continue
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), u.name())
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "/usr/bin/trimtab", self)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", u.name(), err, out)
		}
		threshold := "13"
		if !central {
			threshold = "20"
		}
		if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold="+threshold, file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", u.name(), err, out)
		}
	}
}

// three servers, as the files say, on addresses of their own.
func serveThree(t *testing.T, dir string) (servers []*server.Server, urls, routes []string) {
	t.Helper()
	s := three()
	ports := map[string][2]string{}
	for _, name := range s.Servers {
		client, route := loopback.Address(t), loopback.Address(t)
		_, c, _ := net.SplitHostPort(client)
		_, r, _ := net.SplitHostPort(route)
		ports[name] = [2]string{c, r}
	}
	for _, name := range s.Servers {
		at := filepath.Join(dir, "nats-"+name)
		b, err := os.ReadFile(filepath.Join(at, "nats-server.conf"))
		if err != nil {
			t.Fatal(err)
		}
		conf := string(b)
		for other, p := range ports {
			conf = strings.ReplaceAll(conf, other+":6222", other+":"+p[1])
		}
		conf = strings.NewReplacer("/etc/nats/", at+"/", "/var/lib/nats", t.TempDir(), "0.0.0.0:4222", name+":"+ports[name][0], "0.0.0.0:6222", name+":"+ports[name][1]).Replace(conf)
		servers = append(servers, clustertest.Start(t, conf))
		urls = append(urls, "tls://"+name+":"+ports[name][0])
		routes = append(routes, name+":"+ports[name][1])
	}
	return servers, urls, routes
}

func TestThreeServersKeepEveryStreamThreeTimesAndGoOnWithTwo(t *testing.T) {
	t.Parallel()
	f := &fleet{T: t, dir: t.TempDir(), spec: three()}
	if err := f.spec.Write(f.dir); err != nil {
		t.Fatal(err)
	}
	servers, urls, routes := serveThree(t, f.dir)
	f.url, f.replicas = strings.Join(urls, ","), 3
	f.eventually("a planner makes the streams", func() error {
		b, err := f.bus(natsbus.Planner, "")
		if err == nil {
			b.Close()
		}
		return err
	})
	p := f.peer(user{role: natsbus.Planner})
	for _, row := range natsbus.Table() {
		if row.Name == "" || row.Name == "(others)" {
			continue
		}
		if row.Bucket {
			row.Name = "KV_" + row.Name
		}
		s, err := p.js.Stream(t.Context(), row.Name)
		if err != nil {
			t.Fatal(err)
		}
		if n := s.CachedInfo().Config.Replicas; n != 3 {
			t.Errorf("%s is kept %d times", row.Name, n)
		}
	}
	t.Run("an agent's certificate makes no server", func(t *testing.T) {
		if why := asServer(filepath.Join(f.dir, "agent-h1"), routes[0]); why == nil {
			t.Error("the server takes an agent for a server")
		}
		if why := asServer(filepath.Join(f.dir, "nats-127.0.0.2"), routes[0]); why != nil {
			t.Errorf("and it takes no server for one: %v", why)
		}
	})
	agent := f.opened(natsbus.Agent, "h1")
	for _, s := range servers { // the one that leads, maybe
		if s.JetStreamIsLeader() {
			s.Shutdown()
			s.WaitForShutdown()
			break
		}
	}
	f.eventually("a holding is stored on two of three", func() error {
		return agent.Publish(t.Context(), values()[trimtab.KindHolding])
	})
}

// asServer says to the port for servers that it is one, with the certificate in
// a directory; nil: it was taken for one.
func asServer(dir, address string) error {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		return err
	}
	c, err := tls.Dial("tcp", address, &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "CONNECT {\"verbose\":false,\"tls_required\":true,\"name\":\"X\",\"cluster\":\"trimtab\"}\r\nPING\r\n"); err != nil {
		return err
	}
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		switch {
		case strings.HasPrefix(lines.Text(), "PONG"):
			return nil
		case strings.HasPrefix(lines.Text(), "-ERR"):
			return errors.New(lines.Text())
		}
	}
	return fmt.Errorf("closed: %w", lines.Err())
}
