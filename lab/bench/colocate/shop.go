package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// nginxConf makes nginx ask the gateway and compress what that answers, with one
// worker.
const nginxConf = `daemon off;
worker_processes 1;
user %[3]s;
pid %[1]s/nginx.pid;
error_log stderr warn;
events { worker_connections 8192; }
http {
  access_log off;
  gzip on;
  gzip_comp_level 6;
  gzip_proxied any;
  default_type text/html;
  keepalive_requests 1000000;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  upstream gateway { server unix:%[1]s/gateway; keepalive 512; }
  server {
    listen %[2]s backlog=4096;
    location / {
      proxy_pass http://gateway;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffers 64 16k;
      proxy_buffer_size 16k;
    }
  }
}
`

// script keeps Redis busy for as many turns as it is told.
const script = "local x = 1 for i = 1, tonumber(ARGV[1]) do x = (x * 1103515245 + 12345) % 2147483648 end return x"

// groupPrefix begins the names of the bench's cgroups.
const groupPrefix = "trimtab-colocate-"

// normal is the weight that the kernel gives a group; the generator's and the
// controller's groups have ten times that, so that they do not disturb the figures.
const normal = 100

// shop is the latency-critical service: nginx in front, which asks a gateway in this
// process, which asks Redis.
type shop struct {
	front, back  *rig.Group
	nginx, redis *rig.Process
	gateway      *http.Server
	address      string
	client       *http.Client
	pool         *rig.Connections
	// text is what nginx compresses, turns how long Redis' script runs.
	text  []byte
	turns int
}

// start starts both components in their groups, with a request that costs little.
func (s *shop) start(ctx context.Context, root, dir string) error {
	var err error
	if s.front, err = rig.NewGroup(root, groupPrefix, "shop-nginx", normal); err != nil {
		return err
	}
	if s.back, err = rig.NewGroup(root, groupPrefix, "shop-redis", normal); err != nil {
		return err
	}
	s.text, s.turns = prose(16<<10), 1000
	if err := s.startRedis(ctx, dir); err != nil {
		return err
	}
	if err := s.startGateway(ctx, dir); err != nil {
		return err
	}
	return s.startNginx(ctx, dir)
}

func (s *shop) startRedis(ctx context.Context, dir string) error {
	address, err := rig.FreeAddress()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("start redis: %w", err)
	}
	binary, err := rig.Lookup("redis-server", "redis-server")
	if err != nil {
		return err
	}
	s.redis, err = rig.Start(rig.Program{
		Args: []string{binary, "--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no", "--tcp-backlog", "511"},
		Dir:  dir, Log: filepath.Join(dir, "redis.log"), Stop: syscall.SIGTERM,
	}, s.back)
	if err != nil {
		return err
	}
	s.pool = rig.NewConnections(inFlight, func(ctx context.Context) (net.Conn, error) { return rig.Dial(ctx, address) })
	return s.redis.Await(ctx, s.ask)
}

// ask runs the script in Redis.
func (s *shop) ask(ctx context.Context) error {
	return s.pool.Use(ctx, func(c *rig.Connection) error {
		var b strings.Builder
		for _, a := range []string{"EVAL", script, "0", strconv.Itoa(s.turns)} {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
		}
		if _, err := c.Write([]byte("*4\r\n" + b.String())); err != nil {
			return fmt.Errorf("ask redis: %w", err)
		}
		return integer(c.In)
	})
}

// integer reads an answer of the Redis protocol, of which only an integer is
// right: ":123\r\n".
func integer(in *bufio.Reader) error {
	line, err := in.ReadString('\n')
	if err != nil {
		return fmt.Errorf("read from redis: %w", err)
	}
	if !strings.HasPrefix(line, ":") {
		return fmt.Errorf("read %.80q from redis: %w", line, rig.ErrAnswer)
	}
	return nil
}

// The gateway says when it asked Redis and had the answer, in ns since 1970.
const askedHeader, answeredHeader = "Redis-Asked", "Redis-Answered"

func (s *shop) startGateway(ctx context.Context, dir string) error {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "unix", filepath.Join(dir, "gateway"))
	if err != nil {
		return fmt.Errorf("listen for nginx: %w", err)
	}
	s.gateway = &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := time.Now()
		if err := s.ask(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set(askedHeader, strconv.FormatInt(asked.UnixNano(), 10))
		w.Header().Set(answeredHeader, strconv.FormatInt(time.Now().UnixNano(), 10))
		_, _ = w.Write(s.text) // nginx may be gone
	})}
	go func() { _ = s.gateway.Serve(l) }() // ends with close
	return nil
}

func (s *shop) startNginx(ctx context.Context, dir string) error {
	var err error
	if s.address, err = rig.FreeAddress(); err != nil {
		return err
	}
	user, err := rig.CurrentUser()
	if err != nil {
		return fmt.Errorf("start nginx: %w", err)
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, s.address, user), 0o600); err != nil {
		return fmt.Errorf("start nginx: %w", err)
	}
	binary, err := rig.Lookup("nginx", "nginx-light")
	if err != nil {
		return err
	}
	log := filepath.Join(dir, "nginx.log")
	s.nginx, err = rig.Start(rig.Program{Args: []string{binary, "-e", log, "-p", dir, "-c", conf}, Dir: dir, Log: log, Stop: syscall.SIGTERM}, s.front)
	if err != nil {
		return err
	}
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * inFlight, DisableCompression: true}}
	return s.nginx.Await(ctx, func(ctx context.Context) error { _, err := s.do(ctx); return err })
}

// prose is text of n bytes that compresses as pages do, by about four.
func prose(n int) []byte {
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

// do sends one request and reads its answer to the end.
func (s *shop) do(ctx context.Context) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/", nil)
	if err != nil {
		return answer{}, fmt.Errorf("ask nginx: %w", err)
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("ask nginx: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "gzip" {
		return answer{}, fmt.Errorf("ask nginx: %s, content encoding %q: %w", resp.Status, resp.Header.Get("Content-Encoding"), rig.ErrAnswer)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return answer{}, fmt.Errorf("read from nginx: %w", err)
	}
	asked, err1 := strconv.ParseInt(resp.Header.Get(askedHeader), 10, 64)
	answered, err2 := strconv.ParseInt(resp.Header.Get(answeredHeader), 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return answer{}, fmt.Errorf("read from nginx: %w: %w", rig.ErrAnswer, err)
	}
	return answer{time.Unix(0, asked), time.Unix(0, answered)}, nil
}

// close ends both components and removes their groups, however far start came.
func (s *shop) close() error {
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	if s.nginx != nil {
		s.nginx.Close()
	}
	if s.gateway != nil {
		_ = s.gateway.Close() // nothing depends on its connections
	}
	if s.pool != nil {
		s.pool.Close()
	}
	if s.redis != nil {
		s.redis.Close()
	}
	var failed []error
	for _, g := range []*rig.Group{s.front, s.back} {
		if g != nil {
			failed = append(failed, g.Close())
		}
	}
	return errors.Join(failed...)
}
