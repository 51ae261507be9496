package kube

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Objective is an object that says a service level objective, as other tools keep it.
type Objective struct {
	// Name is KIND NAMESPACE/NAME.
	Name string
	// Text is the object as JSON: what a file of that tool would say.
	Text []byte
}

// maxObjectives bounds the objects of one kind that are read.
const maxObjectives = 1000

// Objectives reads the objectives that Sloth and Pyrra keep in a namespace, "" in all of
// them. A kind that the server does not have is left out.
func (c *Client) Objectives(ctx context.Context, namespace string) (all []Objective, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, r := range []Resource{
		{"sloth.slok.dev", "v1", "prometheusservicelevels", true},
		{"pyrra.dev", "v1alpha1", "servicelevelobjectives", true},
	} {
		list, err := c.of(r, namespace).List(ctx, metav1.ListOptions{Limit: maxObjectives})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, kindOf(err, "list", r, namespace, "")
		}
		if list.GetContinue() != "" {
			return nil, fmt.Errorf("list %s: more than %d: name a namespace", r, maxObjectives)
		}
		for i := range list.Items {
			u := &list.Items[i]
			text, err := json.MarshalIndent(map[string]any{
				"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "spec": u.Object["spec"],
				"metadata": map[string]any{"name": u.GetName(), "namespace": u.GetNamespace(), "labels": u.GetLabels()},
			}, "", "  ")
			if err != nil {
				return nil, fmt.Errorf("encode %s %s/%s: %w", r, u.GetNamespace(), u.GetName(), err)
			}
			all = append(all, Objective{fmt.Sprintf("%s %s/%s", u.GetKind(), u.GetNamespace(), u.GetName()), text})
		}
	}
	return all, nil
}
