package kube

import (
	"context"
	"encoding/base64"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// ConfigMap is a ConfigMap of trimtab.
type ConfigMap struct {
	Meta       `json:"metadata"`
	BinaryData map[string][]byte `json:"binaryData"`
	Data       map[string]string `json:"data"`
}

// ConfigMap reads one; the error is os.ErrNotExist if there is none.
func (c *Client) ConfigMap(ctx context.Context, namespace, name string) (*ConfigMap, error) {
	m := &ConfigMap{}
	return m, c.get(ctx, configMaps(), namespace, name, m)
}

// CreateConfigMap makes an empty one.
func (c *Client) CreateConfigMap(ctx context.Context, namespace, name string) (*ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	u, err := c.of(configMaps(), namespace).Create(ctx, configMap(namespace, name, nil), metav1.CreateOptions{FieldManager: FieldManager})
	return answered(u, err, "create", namespace, name)
}

// UpdateConfigMap replaces the data of one, if it still is of the version of at: the error
// is trimtab.ErrStale otherwise.
func (c *Client) UpdateConfigMap(ctx context.Context, at *ConfigMap, data map[string][]byte) (*ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	u := configMap(at.Namespace, at.Name, data)
	u.SetUID(types.UID(at.UID))
	u.SetResourceVersion(at.ResourceVersion)
	u, err := c.of(configMaps(), at.Namespace).Update(ctx, u, metav1.UpdateOptions{FieldManager: FieldManager})
	return answered(u, err, "update", at.Namespace, at.Name)
}

// answered decodes the server's answer to a write.
func answered(u *unstructured.Unstructured, err error, verb, namespace, name string) (*ConfigMap, error) {
	if err != nil {
		return nil, kindOf(err, verb, configMaps(), namespace, name)
	}
	m := &ConfigMap{}
	return m, decode(u, m)
}

// SetData changes texts of one, if it still is of the version of at; nil removes a key.
func (c *Client) SetData(ctx context.Context, at *ConfigMap, change map[string]*string) (*ConfigMap, error) {
	data := make(map[string]any, len(change))
	for key, text := range change {
		if data[key] = nil; text != nil {
			data[key] = *text
		}
	}
	m := &ConfigMap{}
	return m, c.patch(ctx, configMaps(), &at.Meta, types.MergePatchType, map[string]any{"data": data}, m)
}

func configMap(namespace, name string, data map[string][]byte) *unstructured.Unstructured {
	encoded := make(map[string]any, len(data))
	for key, b := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(b)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata":   map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"app.kubernetes.io/managed-by": "trimtab"}},
		"binaryData": encoded,
	}}
}
