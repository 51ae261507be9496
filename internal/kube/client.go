package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trimtab/trimtab"
)

// FieldManager is the field manager of trimtab's writes.
const FieldManager = "trimtab"

// requestTimeout is the time limit of a request that is not a watch.
const requestTimeout = 15 * time.Second

// Config says which cluster.
type Config struct {
	// Kubeconfig is a file; "": the service account of this pod, or outside of a pod the file
	// that kubectl would use.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Context is a context of the kubeconfig file; "": the current one.
	Context string `json:"context,omitempty"`
}

// Client asks the API server of one cluster. It is safe for concurrent use.
type Client struct {
	config  Config
	dynamic dynamic.Interface
	http    *http.Client
	base    *url.URL
}

// Open reads the configuration. It asks nothing of the server.
func Open(c Config) (*Client, error) {
	config, err := restConfig(c)
	if err != nil {
		return nil, fmt.Errorf("find cluster: %w", err)
	}
	config.QPS = -1 // the library's limit ignores watches and retries: see pace
	config.Wrap(func(t http.RoundTripper) http.RoundTripper {
		return &pace{RoundTripper: t, every: time.Second / queriesPerSecond, burst: queryBurst}
	})
	config.UserAgent = "trimtab"
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	d, err := dynamic.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return &Client{c, d, transport, base}, nil
}

// restConfig reads a kubeconfig, or the files that a pod has.
func restConfig(c Config) (*rest.Config, error) {
	if c.Kubeconfig == "" && c.Context == "" {
		if config, err := rest.InClusterConfig(); !errors.Is(err, rest.ErrNotInCluster) {
			return config, err
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.Context}).ClientConfig()
}

// Config returns the configuration of the client.
func (c *Client) Config() Config { return c.config }

// Server names the cluster for messages.
func (c *Client) Server() string { return c.base.Host }

// Resource is a kind of object as in the server's paths.
type Resource struct {
	Group, Version, Name string
	// Namespaced objects are in a namespace.
	Namespaced bool
}

func (r Resource) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Name}
}

// String is the name in messages, such as deployments.apps.
func (r Resource) String() string {
	if r.Group == "" {
		return r.Name
	}
	return r.Name + "." + r.Group
}

// ResourceOfKind returns the resource of a kind of workload.
func ResourceOfKind(kind string) (Resource, error) {
	switch kind {
	case Deployment:
		return deployments(), nil
	case StatefulSet:
		return statefulsets(), nil
	case DaemonSet:
		return Resource{"apps", "v1", "daemonsets", true}, nil
	case Rollout:
		return rollouts(), nil
	}
	return Resource{}, fmt.Errorf("workload of kind %.40q: trimtab knows Deployment, StatefulSet, DaemonSet and Rollout: %w", kind, trimtab.ErrUnsupported)
}

// The kinds of workloads. Rollout is that of Argo, whose pods belong to ReplicaSets as those of a
// Deployment do.
const (
	Deployment  = "Deployment"
	StatefulSet = "StatefulSet"
	DaemonSet   = "DaemonSet"
	Rollout     = "Rollout"
)

func (c *Client) of(r Resource, namespace string) dynamic.ResourceInterface {
	if r.Namespaced && namespace != "" {
		return c.dynamic.Resource(r.gvr()).Namespace(namespace)
	}
	return c.dynamic.Resource(r.gvr())
}

// get reads an object into out.
func (c *Client) get(ctx context.Context, r Resource, namespace, name string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	u, err := c.of(r, namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return kindOf(err, "get", r, namespace, name)
	}
	return decode(u, out)
}

// Workload reads a workload.
func (c *Client) Workload(ctx context.Context, ref Ref) (*Workload, error) {
	r, err := ResourceOfKind(ref.Kind)
	if err != nil {
		return nil, err
	}
	w := &Workload{Kind: ref.Kind}
	return w, c.get(ctx, r, ref.Namespace, ref.Name, w)
}

// Pod reads a pod.
func (c *Client) Pod(ctx context.Context, namespace, name string) (*Pod, error) {
	p := &Pod{}
	return p, c.get(ctx, pods(), namespace, name, p)
}

// podsAtOnce bounds the objects of one answer.
const podsAtOnce = 500

// PodsIn reads all pods of a namespace, by name.
func (c *Client) PodsIn(ctx context.Context, namespace string) (map[string]*Pod, error) {
	all := map[string]*Pod{}
	err := each(ctx, c, pods(), namespace, func(p *Pod) { all[p.Name] = p })
	return all, err
}

// Workloads reads the Deployments and StatefulSets of a namespace that have these labels.
func (c *Client) Workloads(ctx context.Context, namespace string, labels map[string]string) (all []*Workload, err error) {
	for _, kind := range []string{Deployment, StatefulSet} {
		r, _ := ResourceOfKind(kind) // both are known
		take := func(w *Workload) {
			if w.Kind = kind; selects(labels, w.Labels) {
				all = append(all, w)
			}
		}
		if err := each(ctx, c, r, namespace, take); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Scheduled reads the pods of all namespaces that have not ended, and all nodes.
func (c *Client) Scheduled(ctx context.Context) (all []*Pod, on []*Node, err error) {
	err = each(ctx, c, pods(), "", func(p *Pod) {
		if !p.Over() {
			all = append(all, p)
		}
	})
	if err == nil {
		err = each(ctx, c, nodes(), "", func(n *Node) { on = append(on, n) })
	}
	return all, on, err
}

// each reads all objects of a resource in a namespace, "" for all, page by page.
func each[T any, P interface {
	*T
	meta() *Meta
}](ctx context.Context, c *Client, r Resource, namespace string, take func(P)) error {
	for next := ""; ; {
		page, cancel := context.WithTimeout(ctx, requestTimeout)
		var broken error
		meta, err := c.list(page, r, namespace, metav1.ListOptions{Limit: podsAtOnce, Continue: next}, func(b []byte) {
			o := P(new(T))
			if err := json.Unmarshal(b, o); err != nil {
				broken = fmt.Errorf("read one of %s in %q: %w: %w", r, namespace, err, trimtab.ErrInvalid)
				return
			}
			slim(o.meta())
			take(o)
		})
		cancel()
		if err != nil {
			return kindOf(err, "list", r, namespace, "")
		}
		if broken != nil {
			return broken
		}
		if next = meta.Continue; next == "" {
			return nil
		}
	}
}

// Allocatable returns how much of a resource a node has for pods.
func (c *Client) Allocatable(ctx context.Context, node, resource string) (float64, error) {
	n := &Node{}
	if err := c.get(ctx, nodes(), "", node, n); err != nil {
		return 0, err
	}
	return n.allocatable(resource)
}

// patch sends a patch that the server carries out only on the object with uid and
// resourceVersion of at: it answers 409, or 422 for another uid, otherwise.
func (c *Client) patch(ctx context.Context, r Resource, at *Meta, kind types.PatchType, body map[string]any, out any, sub ...string) error {
	body["metadata"] = map[string]any{"uid": at.UID, "resourceVersion": at.ResourceVersion}
	return c.send(ctx, r, at, kind, body, out, sub...)
}

// send sends a patch, and decodes the answer into out; nil: it is ignored.
func (c *Client) send(ctx context.Context, r Resource, at *Meta, kind types.PatchType, body map[string]any, out any, sub ...string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	b, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode patch of %s %s/%s: %w", r, at.Namespace, at.Name, err)
	}
	u, err := c.of(r, at.Namespace).Patch(ctx, at.Name, kind, b, metav1.PatchOptions{FieldManager: FieldManager}, sub...)
	if err != nil {
		return kindOf(err, strings.TrimSpace("patch "+strings.Join(sub, "/")), r, at.Namespace, at.Name)
	}
	if out == nil {
		return nil
	}
	return decode(u, out)
}

// SetReplicas sets the number of pods of the workload that at was read of.
func (c *Client) SetReplicas(ctx context.Context, ref Ref, at *Meta, replicas int64) (*Scale, error) {
	r, err := ResourceOfKind(ref.Kind)
	if err != nil {
		return nil, err
	}
	s := &Scale{}
	return s, c.patch(ctx, r, at, types.MergePatchType, map[string]any{"spec": map[string]any{"replicas": replicas}}, s, "scale")
}

// Resize sets requests and limits of one container of a pod, or with container "" of the pod as a
// whole, as quantities, in place. Resources that are not named stay.
func (c *Client) Resize(ctx context.Context, at *Meta, container string, requests, limits map[string]string) (*Pod, error) {
	resources := map[string]any{}
	if len(requests) > 0 {
		resources["requests"] = requests
	}
	if len(limits) > 0 {
		resources["limits"] = limits
	}
	spec := map[string]any{"resources": resources}
	if container != "" {
		spec = map[string]any{"containers": []any{map[string]any{"name": container, "resources": resources}}}
	}
	p := &Pod{}
	return p, c.patch(ctx, pods(), at, types.StrategicMergePatchType, map[string]any{"spec": spec}, p, "resize")
}

// decode reads the fields that trimtab knows of an object.
func decode(u *unstructured.Unstructured, out any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return fmt.Errorf("read %s %s/%s: %w: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err, trimtab.ErrInvalid)
	}
	return nil
}

// kindOf gives an error of the server one of trimtab's kinds.
func kindOf(err error, verb string, r Resource, namespace, name string) error {
	switch {
	case apierrors.IsNotFound(err), apierrors.IsGone(err):
		err = fmt.Errorf("%w: %w", err, os.ErrNotExist)
	case apierrors.IsConflict(err), isReplaced(err):
		err = fmt.Errorf("%w: %w", err, trimtab.ErrStale)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsUnauthorized(err):
		err = fmt.Errorf("%w: %w", err, trimtab.ErrRefused)
	case apierrors.IsMethodNotSupported(err):
		err = fmt.Errorf("%w: %w", err, trimtab.ErrUnsupported)
	}
	return fmt.Errorf("%s %s %s: %w", verb, r, strings.TrimPrefix(namespace+"/"+name, "/"), err)
}

// isReplaced reports whether the server said that another object has the name: of
// pods/resize it answers 422 for another uid, not 409.
func isReplaced(err error) bool {
	if !apierrors.IsInvalid(err) {
		return false
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil &&
		slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// maxAnswer bounds an answer that is not a list of objects.
const maxAnswer = 4 << 20

// raw decodes the answer of a path of the server that is not an object.
func (c *Client) raw(ctx context.Context, path string, out any) error {
	return c.rawUpTo(ctx, maxAnswer, path, out)
}

func (c *Client) rawUpTo(ctx context.Context, most int64, path string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	at := *c.base
	at.Path = strings.TrimSuffix(at.Path, "/") + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", path, err)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", path, err)
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("ask %s: %w", path, os.ErrNotExist)
	case answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("ask %s: %s: %w", path, answer.Status, trimtab.ErrRefused)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("ask %s: %s: %w", path, answer.Status, trimtab.ErrStale)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, most)).Decode(out); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// Version is the version of the server, such as 1.37.
type Version struct{ Major, Minor int }

// String is the version as people write it.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Version asks the server which one it is.
func (c *Client) Version(ctx context.Context) (v Version, err error) {
	var said struct{ Major, Minor string }
	if err := c.raw(ctx, "/version", &said); err != nil {
		return v, err
	}
	number := func(s string) int {
		n, _ := strconv.Atoi(strings.TrimRight(s, "+")) // 0 if it is not a number
		return n
	}
	return Version{number(said.Major), number(said.Minor)}, nil
}

// Serves reports whether the server has a resource, perhaps a subresource such as
// pods/resize, with a verb.
func (c *Client) Serves(ctx context.Context, group, version, name, verb string) (bool, error) {
	path := "/apis/" + group + "/" + version
	if group == "" {
		path = "/api/" + version
	}
	var list struct {
		Resources []struct {
			Name  string   `json:"name"`
			Verbs []string `json:"verbs"`
		} `json:"resources"`
	}
	if err := c.raw(ctx, path, &list); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	for _, r := range list.Resources {
		if r.Name == name && slices.Contains(r.Verbs, verb) {
			return true, nil
		}
	}
	return false, nil
}

// Right is a permission that this client may have.
type Right struct{ Verb, Group, Resource, Subresource, Namespace, Name string }

// String is the right as a person reads it.
func (r Right) String() string {
	what := r.Resource
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	if r.Group != "" {
		what += "." + r.Group
	}
	if r.Namespace != "" {
		what += " in namespace " + r.Namespace
	}
	return r.Verb + " " + what
}

// Allowed asks the server whether this client has a right.
func (c *Client) Allowed(ctx context.Context, r Right) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	reviews := Resource{Group: "authorization.k8s.io", Version: "v1", Name: "selfsubjectaccessreviews"}
	attributes := map[string]any{"verb": r.Verb, "group": r.Group, "resource": r.Resource}
	for key, value := range map[string]string{"subresource": r.Subresource, "namespace": r.Namespace, "name": r.Name} {
		if value != "" {
			attributes[key] = value
		}
	}
	u, err := c.of(reviews, "").Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": attributes},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, kindOf(err, "ask for the right to "+r.String()+" by", reviews, "", "")
	}
	allowed, _, err := unstructured.NestedBool(u.Object, "status", "allowed")
	return allowed, err
}

// The resources that are asked for.

func pods() Resource          { return Resource{"", "v1", "pods", true} }
func nodes() Resource         { return Resource{"", "v1", "nodes", false} }
func quotas() Resource        { return Resource{"", "v1", "resourcequotas", true} }
func ranges() Resource        { return Resource{"", "v1", "limitranges", true} }
func configMaps() Resource    { return Resource{"", "v1", "configmaps", true} }
func deployments() Resource   { return Resource{"apps", "v1", "deployments", true} }
func statefulsets() Resource  { return Resource{"apps", "v1", "statefulsets", true} }
func rollouts() Resource      { return Resource{"argoproj.io", "v1alpha1", "rollouts", true} }
func replicasets() Resource   { return Resource{"apps", "v1", "replicasets", true} }
func hpas() Resource          { return Resource{"autoscaling", "v2", "horizontalpodautoscalers", true} }
func budgets() Resource       { return Resource{"policy", "v1", "poddisruptionbudgets", true} }
func vpas() Resource          { return Resource{"autoscaling.k8s.io", "v1", "verticalpodautoscalers", true} }
func scaledObjects() Resource { return Resource{"keda.sh", "v1alpha1", "scaledobjects", true} }
