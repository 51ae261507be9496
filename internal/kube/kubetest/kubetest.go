// Package kubetest is an API server in memory for tests that need no real one: objects
// as JSON, lists and watches with resource versions, scale, resize and ConfigMaps, each
// with the expected uid and version, and faults on demand. It answers as a
// kube-apiserver 1.37 was seen to. What a kubelet does, tests do by hand ([Server.Edit],
// [Server.Kubelet]).
package kubetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Object is an object in decoded JSON.
type Object = map[string]any

// Server is the API server.
type Server struct {
	http *httptest.Server
	t    testing.TB

	mu      sync.Mutex
	objects map[string]Object // by path, such as /api/v1/namespaces/shop/pods/a
	version int
	changed chan struct{}
	history []event
	// oldest is the first version from which a watch may begin.
	oldest int
	// fail returns the status with which a request fails, 0: it does not.
	fail func(r *http.Request) int
	// ends closes all watches.
	ends chan struct{}
	// requests counts them by method and kind, such as "PATCH scale".
	requests map[string]int
	writes   []string
	// bodies are the last patches, by path.
	bodies map[string]Object
	// patched are the accepted patches, in order.
	patched []Patch
	// before is called before a request is looked at.
	before func(r *http.Request)
	// lose is the number of further writes that are carried out and answered 504.
	lose int
	// silent is open while watches send nothing; nil: they send.
	silent chan struct{}
	// denied are rights that no client has, such as "patch pods/resize".
	denied []string
	// noResize makes it a server before 1.33, minor is its version.
	noResize bool
	minor    int
}

type event struct {
	version int
	kind    string
	path    string
	object  Object
}

// New starts a server.
func New(t testing.TB) *Server {
	s := &Server{t: t, objects: map[string]Object{}, version: 100, changed: make(chan struct{}), ends: make(chan struct{}), requests: map[string]int{}, minor: 37, bodies: map[string]Object{}}
	s.http = httptest.NewServer(s)
	t.Cleanup(func() {
		s.EndWatches()
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Kubeconfig writes a file by which the server is found.
func (s *Server) Kubeconfig() string { return s.KubeconfigOf("somebody") }

// KubeconfigOf is Kubeconfig for a user, which [UserOf] returns.
func (s *Server) KubeconfigOf(user string) string {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`, s.http.URL+userPath+user)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// userPath and userHeader carry the user: without TLS a client sends no token.
const (
	userPath   = "/as/"
	userHeader = "Test-User"
)

// UserOf returns the user of a request.
func UserOf(r *http.Request) string { return r.Header.Get(userHeader) }

// Patch is a patch that was accepted.
type Patch struct{ User, Path string }

// Patched lists the accepted patches, in order.
func (s *Server) Patched() []Patch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.patched)
}

// Before sets a function that is called before each request is handled; it may wait.
func (s *Server) Before(f func(r *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// Fail sets a function that returns the status with which a request fails; nil: none fails.
func (s *Server) Fail(f func(r *http.Request) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// Version makes it a server of 1.MINOR, which is 1.37 otherwise.
func (s *Server) Version(minor int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.minor, s.noResize = minor, minor < 33
}

// NoResize makes it a server without pods/resize.
func (s *Server) NoResize() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noResize = true
}

// Deny revokes rights, such as "patch pods/resize", in reviews of access.
func (s *Server) Deny(rights ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = rights
}

// EndWatches ends all watches, as a server that restarts does.
func (s *Server) EndWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ends)
	s.ends = make(chan struct{})
}

// HoldWatches delays all watch events until the returned function is called, like a slow server.
func (s *Server) HoldWatches() (tell func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make(chan struct{})
	s.silent = held
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.silent == held {
			s.silent = nil
			close(held)
		}
	}
}

// Bodies returns the last patch of each path.
func (s *Server) Bodies() map[string]Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.bodies)
}

// Lose makes the server carry out n PUTs and answer 504 to each.
func (s *Server) Lose(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = n
}

// PutObject is Put of an object that was read.
func (s *Server) PutObject(path string, o Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(path, clone(o))
}

// Forget expires every version: a watch from an old one is answered with 410.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.oldest, s.history = s.version, nil
}

// Requests returns how many there were, by method and kind.
func (s *Server) Requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]int, len(s.requests))
	for k, v := range s.requests {
		out[k] = v
	}
	return out
}

// Writes lists the paths that were written to, with the method.
func (s *Server) Writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

// Put makes or replaces an object, written as JSON, and completes its metadata.
func (s *Server) Put(path, text string) {
	s.t.Helper()
	var o Object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(path, o)
}

// Edit changes an object in place.
func (s *Server) Edit(path string, change func(o Object)) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[path]
	if o == nil {
		s.t.Errorf("there is no %s", path)
		return
	}
	o = clone(o)
	change(o)
	s.put(path, o)
}

// Get returns an object, or nil.
func (s *Server) Get(path string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[path]; o != nil {
		return clone(o)
	}
	return nil
}

// Delete removes an object.
func (s *Server) Delete(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[path]; o != nil {
		delete(s.objects, path)
		s.notify("DELETED", path, o)
	}
}

// put is Put with the lock held.
func (s *Server) put(path string, o Object) {
	parts := strings.Split(path, "/")
	m := Sub(o, "metadata")
	m["name"] = parts[len(parts)-1]
	if i := slices.Index(parts, "namespaces"); i >= 0 && i+3 < len(parts) {
		m["namespace"] = parts[i+1]
	}
	kind := "ADDED"
	if old := s.objects[path]; old != nil && (m["uid"] == nil || m["uid"] == Sub(old, "metadata")["uid"]) {
		kind = "MODIFIED"
		m["uid"] = Sub(old, "metadata")["uid"]
	}
	if m["uid"] == nil {
		m["uid"] = fmt.Sprintf("00000000-0000-0000-0000-%012d", s.version+1)
	}
	s.objects[path] = o
	s.notify(kind, path, o)
}

func (s *Server) notify(kind, path string, o Object) {
	s.version++
	o = clone(o)
	Sub(o, "metadata")["resourceVersion"] = strconv.Itoa(s.version)
	if kind != "DELETED" {
		s.objects[path] = o
	}
	s.history = append(s.history, event{s.version, kind, path, o})
	close(s.changed)
	s.changed = make(chan struct{})
}

// Sub returns the object in an object, creating it if needed.
func Sub(o Object, path ...string) Object {
	for _, name := range path {
		next, ok := o[name].(Object)
		if !ok {
			next = Object{}
			o[name] = next
		}
		o = next
	}
	return o
}

func clone(o Object) (out Object) {
	b, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		panic("kubetest: " + err.Error())
	}
	return out
}

// Paths lists the objects whose paths have the prefix, in order.
func (s *Server) Paths(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for path := range s.objects {
		if strings.HasPrefix(path, prefix) {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// Parse reads an object.
func Parse(t testing.TB, text string) (o Object) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}
