package rig

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
)

// nginxConf is nginx's configuration, with one worker.
const nginxConf = `daemon off;
worker_processes 1;
user %[3]s;
pid %[1]s/nginx.pid;
error_log stderr warn;
events { worker_connections 8192; }
http {
  access_log off;
  default_type text/html;
  keepalive_requests 1000000;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  %[4]s
  server {
    listen %[2]s backlog=4096;
    %[5]s
  }
}
`

// Gzip is a part of nginx's configuration: it compresses each answer anew.
const Gzip = "gzip on; gzip_comp_level 6; gzip_proxied any;"

// Pass is a part of nginx's configuration: it hands requests to an upstream, over
// connections that are used again.
func Pass(upstream string) string {
	return "proxy_pass http://" + upstream + `; proxy_http_version 1.1; proxy_set_header Connection "";`
}

// Site is what an nginx serves.
type Site struct {
	// HTTP and Server stand in the blocks of its configuration with these names.
	HTTP, Server string
	// Ready is a path that is answered once all is there.
	Ready string
	// Most is how many requests are under way.
	Most int
}

// Nginx is an nginx whose answers are compressed.
type Nginx struct {
	Address string
	process *Process
	client  *http.Client
}

// StartNginx starts it in a group with its files in dir, and returns when it answers.
func StartNginx(ctx context.Context, in *Group, dir string, s Site) (*Nginx, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	u, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("start nginx: find own user: %w", err)
	}
	conf, log := filepath.Join(dir, "nginx.conf"), filepath.Join(dir, "nginx.log")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, address, u.Username, s.HTTP, s.Server), 0o600); err != nil {
		return nil, fmt.Errorf("start nginx: %w", err)
	}
	binary, err := Lookup("nginx", "nginx-light")
	if err != nil {
		return nil, err
	}
	process, err := Start(Program{Args: []string{binary, "-e", log, "-p", dir, "-c", conf}, Dir: dir, Log: log, Stop: syscall.SIGTERM}, in)
	if err != nil {
		return nil, err
	}
	n := &Nginx{address, process, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * s.Most, DisableCompression: true}}}
	if err := process.Await(ctx, func(ctx context.Context) error { _, err := n.Ask(ctx, s.Ready); return err }); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Ask sends a request for a path, and reads its answer to the end. The header is that of
// an answer that was wrong, too.
func (n *Nginx) Ask(ctx context.Context, path string) (http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.Address+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask nginx: %w", err)
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := n.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask nginx: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "gzip" {
		return resp.Header, fmt.Errorf("ask nginx: %s, content encoding %q: %w", resp.Status, resp.Header.Get("Content-Encoding"), ErrAnswer)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return resp.Header, fmt.Errorf("read from nginx: %w", err)
	}
	return resp.Header, nil
}

// Close ends it; nil was never started.
func (n *Nginx) Close() {
	if n != nil {
		n.client.CloseIdleConnections()
		n.process.Close()
	}
}

// Prose is text of n bytes that compresses as pages do, by about four.
func Prose(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 2000)
	for i := range words {
		b := make([]byte, 2+r.IntN(9))
		for k := range b {
			b[k] = "etaoinshrdlucmfwypvbgkjqxz"[min(r.IntN(26), r.IntN(26))]
		}
		words[i] = string(b)
	}
	var out strings.Builder
	for out.Len() < n {
		out.WriteString(words[min(r.IntN(len(words)), r.IntN(len(words)))])
		out.WriteByte(' ')
	}
	return []byte(out.String()[:n])
}
