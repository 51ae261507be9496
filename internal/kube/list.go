package kube

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab/trimtab"
)

// This file reads lists one object at a time. The client library first builds maps of the whole
// answer, which for 5,000 pods take more memory than all that is kept of them.

// decoded is an object with only the fields that trimtab reads.
type decoded struct{ object any }

// GetObjectKind implements runtime.Object: the list has the kind.
func (d *decoded) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject is runtime.Object: decoded objects are never changed.
func (d *decoded) DeepCopyObject() runtime.Object { return d }

// decodedList is a list of them.
type decodedList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// DeepCopyObject is runtime.Object.
func (l *decodedList) DeepCopyObject() runtime.Object { return l }

// list reads the objects of one page, or all of them, and passes each to take.
func (c *Client) list(ctx context.Context, r Resource, namespace string, o metav1.ListOptions, take func([]byte)) (meta metav1.ListMeta, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.listURL(r, namespace, o), nil)
	if err != nil {
		return meta, fmt.Errorf("list %s: %w", r, err)
	}
	request.Header.Set("Accept", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		return meta, fmt.Errorf("list %s: %w", r, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return meta, refusalOf(answer, r)
	}
	if meta, err = readList(answer.Body, take); err != nil {
		return meta, fmt.Errorf("read list of %s: %w", r, err)
	}
	return meta, nil
}

func (c *Client) listURL(r Resource, namespace string, o metav1.ListOptions) string {
	at := c.base.JoinPath("api", r.Version)
	if r.Group != "" {
		at = c.base.JoinPath("apis", r.Group, r.Version)
	}
	if r.Namespaced && namespace != "" {
		at = at.JoinPath("namespaces", namespace)
	}
	at = at.JoinPath(r.Name)
	query := url.Values{}
	for key, value := range map[string]string{"resourceVersion": o.ResourceVersion, "resourceVersionMatch": string(o.ResourceVersionMatch), "continue": o.Continue} {
		if value != "" {
			query.Set(key, value)
		}
	}
	if o.Limit > 0 {
		query.Set("limit", strconv.FormatInt(o.Limit, 10))
	}
	at.RawQuery = query.Encode()
	return at.String()
}

// refusalOf is the error that the server answered.
func refusalOf(answer *http.Response, r Resource) error {
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("list %s: %s: %w", r, answer.Status, err)
	}
	status := &metav1.Status{}
	if json.Unmarshal(b, status) != nil || status.Status != metav1.StatusFailure {
		return apierrors.NewGenericServerResponse(answer.StatusCode, "list", schema.GroupResource{Group: r.Group, Resource: r.Name}, "", string(b[:min(len(b), 200)]), 0, true)
	}
	return apierrors.FromObject(status)
}

// readList reads an object that has metadata and items.
func readList(in io.Reader, take func([]byte)) (meta metav1.ListMeta, err error) {
	d := json.NewDecoder(bufio.NewReaderSize(in, 64<<10))
	if err := expect(d, '{'); err != nil {
		return meta, err
	}
	whole := false
	var other json.RawMessage
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return meta, err
		}
		switch name {
		case "metadata":
			err = d.Decode(&meta)
		case "items":
			whole, err = true, readItems(d, take)
		default:
			err = d.Decode(&other)
		}
		if err != nil {
			return meta, err
		}
	}
	if err := expect(d, '}'); err != nil {
		return meta, err
	}
	if !whole || meta.ResourceVersion == "" {
		return meta, trimtab.Invalidf("answer without items or without a version: it is no list")
	}
	return meta, nil
}

// readItems reads the items of a list; null is an empty list.
func readItems(d *json.Decoder, take func([]byte)) error {
	begin, err := d.Token()
	if err != nil || begin == nil {
		return err
	}
	if begin != json.Delim('[') {
		return trimtab.Invalidf("list whose items are %v", begin)
	}
	var item json.RawMessage
	for d.More() {
		if err := d.Decode(&item); err != nil {
			return err
		}
		take(item)
	}
	return expect(d, ']')
}

// expect reads one delimiter.
func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err != nil {
		return err
	}
	if got != want {
		return trimtab.Invalidf("list with %v where %v was expected", got, want)
	}
	return nil
}
