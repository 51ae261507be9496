package kube

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func events() Resource { return Resource{"events.k8s.io", "v1", "events", true} }

// Event is an event about a workload (kubectl describe, kubectl events).
type Event struct {
	Workload Ref
	UID      string
	// Reason is a word in capitals and small letters, Note a sentence.
	Reason, Note string
	// Warning says that something did not work.
	Warning bool
	// Name is the name of the object after it was sent.
	Name string
}

// maxNote is the server's bound.
const maxNote = 1024

// SendEvent makes the event, and sets its name.
func (c *Client) SendEvent(ctx context.Context, e *Event, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	of, err := ResourceOfKind(e.Workload.Kind)
	if err != nil {
		return err
	}
	kind, note := "Normal", strings.ToValidUTF8(e.Note, "")
	if e.Warning {
		kind = "Warning"
	}
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote-3], "") + "…"
	}
	name := fmt.Sprintf("%.200s.%s", e.Workload.Name, strings.ToLower(rand.Text()))
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "events.k8s.io/v1", "kind": "Event",
		"metadata":  map[string]any{"namespace": e.Workload.Namespace, "name": name},
		"eventTime": micro(at), "type": kind, "reason": e.Reason, "note": note, "action": "Autoscale",
		"reportingController": "trimtab", "reportingInstance": "trimtab",
		"regarding": map[string]any{"apiVersion": of.Group + "/" + of.Version, "kind": e.Workload.Kind, "namespace": e.Workload.Namespace, "name": e.Workload.Name, "uid": e.UID},
	}}
	if _, err := c.of(events(), e.Workload.Namespace).Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager}); err != nil {
		return kindOf(err, "create", events(), e.Workload.Namespace, name)
	}
	e.Name = name
	return nil
}

// RepeatEvent says of an event that was sent that the same happened count times in all.
func (c *Client) RepeatEvent(ctx context.Context, e *Event, count int, last time.Time) error {
	body := map[string]any{"series": map[string]any{"count": count, "lastObservedTime": micro(last)}}
	return c.merge(ctx, events(), e.Workload.Namespace, e.Name, body, nil)
}

func micro(t time.Time) string { return t.UTC().Format(metav1.RFC3339Micro) }

// merge sends a merge patch of an object or a subresource of it, of whichever version.
func (c *Client) merge(ctx context.Context, r Resource, namespace, name string, body map[string]any, out any, sub ...string) error {
	return c.send(ctx, r, &Meta{Namespace: namespace, Name: name}, types.MergePatchType, body, out, sub...)
}
