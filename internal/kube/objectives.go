package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab/trimtab"
)

// Objective is an object of another tool that declares a service level objective.
type Objective struct {
	// Name is KIND NAMESPACE/NAME.
	Name string
	// Text is the object as JSON, as in a file of that tool. For OpenSLO, the indicators and data
	// sources of its namespace follow.
	Text []byte
}

// maxObjectives bounds the objects of one kind that are read.
const maxObjectives = 1000

// openSLO is the API group of OpenSLO's objects. In files the version is openslo/v1, which cannot
// be the name of an API group.
const openSLO = "openslo.com"

// objectiveKinds are the kinds of objects that say an objective.
func objectiveKinds() map[string]Resource {
	return map[string]Resource{
		"PrometheusServiceLevel": {"sloth.slok.dev", "v1", "prometheusservicelevels", true},
		"ServiceLevelObjective":  {"pyrra.dev", "v1alpha1", "servicelevelobjectives", true},
		"SLO":                    {openSLO, "v1", "slos", true},
	}
}

// ObjectiveOf reads one objective, KIND NAMESPACE/NAME. The error is os.ErrNotExist if there is
// none, and trimtab.ErrRefused if it may not be read.
func (c *Client) ObjectiveOf(ctx context.Context, object string) (text []byte, err error) {
	kind, at, _ := strings.Cut(object, " ")
	namespace, name, ok := strings.Cut(at, "/")
	r, known := objectiveKinds()[kind]
	if !ok || !known {
		return nil, trimtab.Invalidf("objective %.100q: want KIND NAMESPACE/NAME", object)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	u, err := c.of(r, namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, kindOf(err, "get", r, namespace, name)
	}
	own, err := objectiveText(u)
	if err != nil {
		return nil, err
	}
	if r.Group == openSLO {
		beside, err := c.indicators(ctx, namespace)
		if err != nil {
			return nil, err
		}
		own += beside[namespace]
	}
	return []byte(own), nil
}

// ObjectiveRights lists the rights needed to read an objective, KIND NAMESPACE/NAME.
func ObjectiveRights(object string) (all []Right) {
	kind, at, _ := strings.Cut(object, " ")
	namespace, _, _ := strings.Cut(at, "/")
	r := objectiveKinds()[kind]
	all = append(all, Right{Verb: "get", Group: r.Group, Resource: r.Name, Namespace: namespace})
	if r.Group == openSLO {
		for _, beside := range []string{"slis", "datasources"} {
			all = append(all, Right{Verb: "list", Group: openSLO, Resource: beside, Namespace: namespace})
		}
	}
	return all
}

// Objectives reads the objectives of OpenSLO, Sloth and Pyrra in a namespace, "": in all. A kind
// that the server does not have is left out.
func (c *Client) Objectives(ctx context.Context, namespace string) (all []Objective, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, kind := range []string{"PrometheusServiceLevel", "ServiceLevelObjective", "SLO"} {
		r := objectiveKinds()[kind]
		list, err := c.objectives(ctx, r, namespace)
		if err != nil {
			return nil, err
		}
		beside := map[string]string{}
		if r.Group == openSLO && len(list) > 0 {
			if beside, err = c.indicators(ctx, namespace); err != nil {
				return nil, err
			}
		}
		for i := range list {
			u := &list[i]
			text, err := objectiveText(u)
			if err != nil {
				return nil, err
			}
			all = append(all, Objective{fmt.Sprintf("%s %s/%s", u.GetKind(), u.GetNamespace(), u.GetName()), []byte(text + beside[u.GetNamespace()])})
		}
	}
	return all, nil
}

// indicators returns what objectives of OpenSLO refer to, as further documents by namespace.
func (c *Client) indicators(ctx context.Context, namespace string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range []string{"slis", "datasources"} {
		list, err := c.objectives(ctx, Resource{openSLO, "v1", name, true}, namespace)
		if err != nil {
			return nil, err
		}
		for i := range list {
			text, err := objectiveText(&list[i])
			if err != nil {
				return nil, err
			}
			out[list[i].GetNamespace()] += "\n---\n" + text
		}
	}
	return out, nil
}

// objectives lists one kind; none if the server does not have it.
func (c *Client) objectives(ctx context.Context, r Resource, namespace string) ([]unstructured.Unstructured, error) {
	list, err := c.of(r, namespace).List(ctx, metav1.ListOptions{Limit: maxObjectives})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, kindOf(err, "list", r, namespace, "")
	case list.GetContinue() != "":
		return nil, fmt.Errorf("list %s: more than %d: name a namespace", r, maxObjectives)
	}
	return list.Items, nil
}

func objectiveText(u *unstructured.Unstructured) (string, error) {
	text, err := json.MarshalIndent(map[string]any{
		"apiVersion": strings.Replace(u.GetAPIVersion(), openSLO+"/", "openslo/", 1), "kind": u.GetKind(), "spec": u.Object["spec"],
		"metadata": map[string]any{"name": u.GetName(), "namespace": u.GetNamespace(), "labels": u.GetLabels()},
	}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	return string(text), nil
}
