package kubetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if rest, ok := strings.CutPrefix(r.URL.Path, userPath); ok {
		user, path, _ := strings.Cut(rest, "/")
		r.Header.Set(userHeader, user)
		r.URL.Path = "/" + path
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	last := parts[len(parts)-1]
	watching := r.URL.Query().Get("watch") != ""
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		before(r)
	}
	s.mu.Lock()
	s.requests[r.Method+" "+last]++
	if r.Method != http.MethodGet && last != "selfsubjectaccessreviews" {
		s.writes = append(s.writes, r.Method+" "+r.URL.Path)
	}
	status := 0
	if s.fail != nil {
		status = s.fail(r)
	}
	s.mu.Unlock()
	switch {
	case status != 0:
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		answer(w, status, Object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "reason": reason(status), "message": fmt.Sprintf("as asked for: %d", status)})
	case r.URL.Path == "/version":
		s.mu.Lock()
		minor := strconv.Itoa(s.minor)
		s.mu.Unlock()
		answer(w, 200, Object{"major": "1", "minor": minor})
	case s.discovers(w, r.URL.Path):
	case last == "selfsubjectaccessreviews":
		s.review(w, r)
	case watching:
		s.watch(w, r)
	case r.Method == http.MethodGet && s.isList(r.URL.Path):
		s.list(w, r)
	default:
		s.one(w, r)
	}
}

// review answers whether a right was denied.
func (s *Server) review(w http.ResponseWriter, r *http.Request) {
	var asked Object
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&asked); err != nil {
		refuse(w, 400, "%v", err)
		return
	}
	a := Sub(asked, "spec", "resourceAttributes")
	right := fmt.Sprint(a["verb"], " ", a["resource"])
	if sub, ok := a["subresource"].(string); ok {
		right += "/" + sub
	}
	s.mu.Lock()
	allowed := !slices.Contains(s.denied, right)
	s.mu.Unlock()
	answer(w, 201, Object{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": Object{}, "status": Object{"allowed": allowed}})
}

// reason returns the API's word for a status.
func reason(status int) string {
	switch status {
	case 401:
		return "Unauthorized"
	case 403:
		return "Forbidden"
	case 404:
		return "NotFound"
	case 409:
		return "Conflict"
	case 410:
		return "Expired"
	case 422:
		return "Invalid"
	case 429:
		return "TooManyRequests"
	}
	return "InternalError"
}

func answer(w http.ResponseWriter, status int, o any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(o) // on an error the client is gone
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	answer(w, status, Object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "reason": reason(status), "message": fmt.Sprintf(format, args...)})
}

// discovers answers discovery requests.
func (s *Server) discovers(w http.ResponseWriter, path string) bool {
	all := map[string][]string{
		"/api/v1":                     {"pods", "nodes", "configmaps", "resourcequotas", "limitranges"},
		"/apis/apps/v1":               {"deployments", "statefulsets", "daemonsets", "replicasets"},
		"/apis/argoproj.io/v1alpha1":  {"rollouts"},
		"/apis/autoscaling/v2":        {"horizontalpodautoscalers"},
		"/apis/policy/v1":             {"poddisruptionbudgets"},
		"/apis/keda.sh/v1alpha1":      {"scaledobjects"},
		"/apis/autoscaling.k8s.io/v1": {"verticalpodautoscalers"},
	}[path]
	if all == nil {
		return false
	}
	list := []any{}
	for _, name := range all {
		list = append(list, Object{"name": name, "verbs": []string{"get", "list", "watch", "patch"}})
	}
	s.mu.Lock()
	if path == "/api/v1" && !s.noResize {
		list = append(list, Object{"name": "pods/resize", "verbs": []string{"get", "patch"}})
	}
	s.mu.Unlock()
	answer(w, 200, Object{"kind": "APIResourceList", "resources": list})
	return true
}

// isList reports whether a path names all objects of a kind.
func (s *Server) isList(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	head := 2 // api/v1
	if parts[0] == "apis" {
		head = 3
	}
	rest := parts[head:]
	return len(rest) == 1 || len(rest) == 3 && rest[0] == "namespaces"
}

// within returns the objects that a list path has.
func (s *Server) within(list, path string) bool {
	parts := strings.Split(strings.Trim(list, "/"), "/")
	kind := parts[len(parts)-1]
	own := strings.Split(path, "/")
	if len(own) < 3 || own[len(own)-2] != kind {
		return false
	}
	return !strings.Contains(list, "/namespaces/") || strings.HasPrefix(path, strings.TrimSuffix(list, "/")+"/")
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	for path, o := range s.objects {
		if s.within(r.URL.Path, path) {
			items = append(items, o)
		}
	}
	answer(w, 200, Object{"kind": "List", "apiVersion": "v1", "metadata": Object{"resourceVersion": strconv.Itoa(s.version)}, "items": items})
}

// watch sends changes, and first the existing objects if the request asks for them.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion")) // 0: from now
	s.mu.Lock()
	ends := s.ends
	if from > 0 && from < s.oldest {
		s.mu.Unlock()
		refuse(w, 410, "too old resource version: %d", from)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(200)
	flush := func() { w.(http.Flusher).Flush() }
	send := func(kind string, o Object) {
		_ = json.NewEncoder(w).Encode(Object{"type": kind, "object": o}) // see answer
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for path, o := range s.objects {
			if s.within(r.URL.Path, path) {
				send("ADDED", o)
			}
		}
		from = s.version
		send("BOOKMARK", Object{"kind": "Any", "apiVersion": "v1", "metadata": Object{"resourceVersion": strconv.Itoa(from), "annotations": Object{"k8s.io/initial-events-end": "true"}}})
	}
	for {
		for _, e := range s.history {
			if e.version > from && s.within(r.URL.Path, e.path) {
				send(e.kind, e.object)
			}
		}
		from = s.version
		changed := s.changed
		s.mu.Unlock()
		flush()
		select {
		case <-r.Context().Done():
			return
		case <-ends:
			return
		case <-changed:
		}
		s.mu.Lock()
		for s.silent != nil {
			speak := s.silent
			s.mu.Unlock()
			select {
			case <-r.Context().Done():
				return
			case <-ends:
				return
			case <-speak:
			}
			s.mu.Lock()
		}
	}
}

// one reads or writes one object, or a subresource of one.
func (s *Server) one(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, sub := r.URL.Path, ""
	for _, name := range []string{"scale", "resize", "status"} {
		if p, ok := strings.CutSuffix(path, "/"+name); ok {
			path, sub = p, name
		}
	}
	body := Object{}
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&body); err != nil {
			refuse(w, 400, "%v", err)
			return
		}
	}
	if r.Method == http.MethodPost {
		path += "/" + fmt.Sprint(Sub(body, "metadata")["name"])
		if s.objects[path] != nil {
			refuse(w, 409, "already exists")
			return
		}
		s.put(path, body)
		answer(w, 201, s.objects[path])
		return
	}
	o := s.objects[path]
	if o == nil {
		refuse(w, 404, "%s not found", path)
		return
	}
	if r.Method == http.MethodPatch {
		s.bodies[r.URL.Path] = clone(body)
	}
	if r.Method != http.MethodGet && !expected(w, o, body, sub) {
		return
	}
	switch {
	case r.Method == http.MethodGet && sub == "":
		answer(w, 200, o)
	case sub == "scale":
		s.scale(w, r, path, o, body)
	case sub == "resize":
		s.resize(w, r, path, o, body)
	case r.Method == http.MethodPut:
		if !same(o, body) { // a write that changes nothing makes no version
			s.put(path, body)
		}
		if s.lose > 0 {
			s.lose--
			refuse(w, http.StatusGatewayTimeout, "it took too long")
			return
		}
		answer(w, 200, s.objects[path])
	case r.Method == http.MethodPatch:
		o = clone(o)
		annotations := Sub(body, "metadata")["annotations"]
		if delete(body, "metadata"); annotations != nil {
			body["metadata"] = Object{"annotations": annotations}
		}
		merge(o, body)
		s.put(path, o)
		answer(w, 200, s.objects[path])
	default:
		refuse(w, 405, "not here")
	}
}

// merge is a JSON merge patch.
func merge(o, patch Object) {
	for key, v := range patch {
		inner, nested := v.(Object)
		switch {
		case v == nil:
			delete(o, key)
		case nested:
			merge(Sub(o, key), inner)
		default:
			o[key] = v
		}
	}
}

// same reports whether two objects differ in their version at most.
func same(o, body Object) bool {
	text := func(o Object) string {
		o = clone(o)
		delete(Sub(o, "metadata"), "resourceVersion")
		b, _ := json.Marshal(o) // it was decoded from JSON
		return string(b)
	}
	return text(o) == text(body)
}

// expected compares uid and version of a write with the stored object.
func expected(w http.ResponseWriter, o, body Object, sub string) bool {
	have, want := Sub(o, "metadata"), Sub(body, "metadata")
	switch {
	case want["uid"] != nil && want["uid"] != have["uid"] && sub == "resize":
		answer(w, 422, Object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422, "reason": "Invalid", "message": "metadata.uid: Invalid value: field is immutable",
			"details": Object{"causes": []any{Object{"reason": "FieldValueInvalid", "field": "metadata.uid", "message": "Invalid value: field is immutable"}}}})
	case want["uid"] != nil && want["uid"] != have["uid"]:
		refuse(w, 409, "Precondition failed: UID in precondition: %v, UID in object meta: %v", want["uid"], have["uid"])
	case want["resourceVersion"] != nil && want["resourceVersion"] != have["resourceVersion"]:
		refuse(w, 409, "the object has been modified; please apply your changes to the latest version and try again")
	default:
		return true
	}
	return false
}

func (s *Server) scale(w http.ResponseWriter, r *http.Request, path string, o, body Object) {
	if r.Method == http.MethodPatch {
		s.patched = append(s.patched, Patch{UserOf(r), path})
		before := clone(o)
		o = clone(o)
		Sub(o, "spec")["replicas"] = Sub(body, "spec")["replicas"]
		if !same(before, o) { // a write that changes nothing makes no generation
			Bump(o)
			s.put(path, o)
		}
		o = s.objects[path]
	}
	m := Sub(o, "metadata")
	answer(w, 200, Object{
		"kind": "Scale", "apiVersion": "autoscaling/v1",
		"metadata": Object{"name": m["name"], "namespace": m["namespace"], "uid": m["uid"], "resourceVersion": m["resourceVersion"]},
		"spec":     Object{"replicas": Sub(o, "spec")["replicas"]},
		"status":   Object{"replicas": Sub(o, "status")["replicas"]},
	})
}

// Bump makes a new generation of an object, as a change of its spec does.
func Bump(o Object) {
	m := Sub(o, "metadata")
	generation, _ := m["generation"].(float64) // 0 where there is none
	m["generation"] = generation + 1
}

func (s *Server) resize(w http.ResponseWriter, r *http.Request, path string, o, body Object) {
	before, was := qos(o), o
	o = clone(o)
	whole := Sub(body, "spec", "resources")
	if own := Sub(o, "spec"); own["resources"] != nil && s.minor < 36 {
		refuse(w, 422, "resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled")
		return
	}
	for part := range whole {
		for name, v := range Sub(whole, part) {
			Sub(o, "spec", "resources", part)[name] = v
		}
	}
	wanted, _ := Sub(body, "spec")["containers"].([]any)
	for _, c := range wanted {
		patch := c.(Object)
		own := Container(o, fmt.Sprint(patch["name"]))
		if own == nil {
			refuse(w, 422, "spec.containers: Forbidden: containers may not be added or removed on resize")
			return
		}
		for _, part := range []string{"requests", "limits"} {
			for name, v := range Sub(patch, "resources", part) {
				Sub(own, "resources", part)[name] = v
			}
		}
	}
	if qos(o) != before {
		refuse(w, 422, "Pod QOS Class may not change as a result of resizing")
		return
	}
	s.patched = append(s.patched, Patch{UserOf(r), path})
	if !same(was, o) {
		Bump(o)
		s.put(path, o)
	}
	answer(w, 200, s.objects[path])
}

// qos is the class of a pod as far as tests need it.
func qos(o Object) string {
	all, some := true, false
	containers, _ := Sub(o, "spec")["containers"].([]any)
	if Sub(o, "spec")["resources"] != nil { // the class goes by those alone
		containers = []any{Sub(o, "spec")}
	}
	for _, c := range containers {
		for _, r := range []string{"cpu", "memory"} {
			limit, request := Sub(c.(Object), "resources", "limits")[r], Sub(c.(Object), "resources", "requests")[r]
			some = some || limit != nil || request != nil
			all = all && limit != nil && limit == request
		}
	}
	switch {
	case all:
		return "Guaranteed"
	case some:
		return "Burstable"
	}
	return "BestEffort"
}

// Container returns a container of a pod's spec, or nil.
func Container(pod Object, name string) Object {
	containers, _ := Sub(pod, "spec")["containers"].([]any)
	i := slices.IndexFunc(containers, func(c any) bool { return c.(Object)["name"] == name })
	if i < 0 {
		return nil
	}
	return containers[i].(Object)
}

// Kubelet carries out a pod's spec: its status then equals it.
func (s *Server) Kubelet(path string) {
	s.Edit(path, func(o Object) {
		status := Sub(o, "status")
		status["phase"], status["qosClass"], status["observedGeneration"] = "Running", qos(o), Sub(o, "metadata")["generation"]
		status["conditions"] = []any{Object{"type": "Ready", "status": "True"}}
		var all []any
		containers, _ := Sub(o, "spec")["containers"].([]any)
		for _, c := range containers {
			all = append(all, Object{"name": c.(Object)["name"], "resources": clone(Sub(c.(Object), "resources")), "allocatedResources": clone(Sub(c.(Object), "resources", "requests")), "state": Object{"running": Object{"startedAt": time.Unix(0, 0).UTC().Format(time.RFC3339)}}})
		}
		status["containerStatuses"] = all
		if Sub(o, "spec")["resources"] != nil {
			status["resources"], status["allocatedResources"] = clone(Sub(o, "spec", "resources")), clone(Sub(o, "spec", "resources", "requests"))
		}
	})
}
