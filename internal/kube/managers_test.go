package kube_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// booked is an entry of managedFields.
func booked(manager, subresource, fields string) string {
	return fmt.Sprintf(`{"manager":%q,"operation":"Update","subresource":%q,"fieldsType":"FieldsV1","fieldsV1":%s}`, manager, subresource, fields)
}

const (
	setsReplicas = `{"f:spec":{"f:replicas":{}}}`
	resized      = `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:resources":{"f:requests":{"f:cpu":{}},"f:limits":{"f:cpu":{}}}}}}}`
)

// object is the metadata of an object with these entries.
func object(t *testing.T, owner string, entries ...string) *kube.Workload {
	t.Helper()
	w := &kube.Workload{}
	text := fmt.Sprintf(`{"metadata":{"namespace":"shop","name":"checkout","ownerReferences":[%s],"managedFields":[%s]}}`, owner, strings.Join(entries, ","))
	if err := json.Unmarshal([]byte(text), w); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestTheControllerThatSetAFieldLastIsNamedByItsProductWhereThatIsKnown(t *testing.T) {
	t.Parallel()
	owner := func(version, kind string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":"iris","uid":"1","controller":true}`, version, kind)
	}
	for name, test := range map[string]struct {
		field, owner, want string
		entries            []string
	}{
		"nobody":                       {field: "replicas"},
		"trimtab":                      {field: "replicas", entries: []string{booked("trimtab", "scale", setsReplicas)}},
		"a person":                     {field: "replicas", entries: []string{booked("kubectl", "scale", setsReplicas)}},
		"whoever deployed it":          {field: "replicas", entries: []string{booked("helm", "", setsReplicas)}},
		"an HPA that may be gone":      {field: "replicas", entries: []string{booked("kube-controller-manager", "scale", setsReplicas)}},
		"Datadog":                      {field: "replicas", entries: []string{booked("datadog-cluster-agent", "scale", setsReplicas)}, want: "DatadogPodAutoscaler sets its replicas (field manager datadog-cluster-agent)"},
		"Datadog by server-side apply": {field: "replicas", entries: []string{booked("datadog-cluster-agent", "", setsReplicas)}, want: "DatadogPodAutoscaler sets its replicas (field manager datadog-cluster-agent)"},
		"KServe":                       {field: "replicas", owner: owner("serving.kserve.io/v1beta1", "InferenceService"), entries: []string{booked("manager", "", setsReplicas)}, want: "KServe InferenceService shop/iris sets its replicas (field manager manager)"},
		"Kthena":                       {field: "replicas", owner: owner("workload.serving.volcano.sh/v1alpha1", "ModelServing"), entries: []string{booked("m", "", setsReplicas)}, want: "Kthena ModelServing shop/iris sets its replicas (field manager m)"},
		"Dynamo":                       {field: "replicas", owner: owner("nvidia.com/v1alpha1", "DynamoGraphDeployment"), entries: []string{booked("manager", "", setsReplicas)}, want: "Dynamo DynamoGraphDeployment shop/iris sets its replicas (field manager manager)"},
		"a kind that nobody knows":     {field: "replicas", owner: owner("acme.io/v1", "Shop"), entries: []string{booked("m", "", setsReplicas)}, want: "Shop shop/iris sets its replicas (field manager m)"},
		"an owner that leaves the number to others": {field: "replicas", owner: owner("acme.io/v1", "Shop"), entries: []string{booked("m", "", `{"f:spec":{"f:template":{}}}`)}},
		"a scaler that nobody knows":                {field: "replicas", entries: []string{booked("acme", "scale", setsReplicas)}, want: "controller acme sets its replicas (metadata.managedFields)"},
		"one that is taken over":                    {field: "replicas", entries: []string{booked("gone", "scale", setsReplicas)}},
		"a resize":                                  {field: "app/cpu", entries: []string{booked("eks", "resize", resized)}, want: "controller eks sets its cpu (metadata.managedFields)"},
		"a resize of something else":                {field: "app/memory", entries: []string{booked("eks", "resize", resized)}},
		"a resize of another container":             {field: "proxy/cpu", entries: []string{booked("eks", "resize", resized)}},
		"a resize of the pod itself":                {field: "cpu", entries: []string{booked("eks", "resize", `{"f:spec":{"f:resources":{"f:limits":{"f:cpu":{}}}}}`)}, want: "controller eks sets its cpu (metadata.managedFields)"},
		"the updater of a VPA, which is watched":    {field: "app/cpu", entries: []string{booked("updater", "resize", resized)}},
		"whoever made the pod":                      {field: "app/cpu", entries: []string{booked("kube-controller-manager", "", resized)}},
		"the second of two": {field: "replicas", entries: []string{booked("helm", "", `{"f:spec":{"f:template":{}}}`), booked("acme", "scale", setsReplicas)},
			want: "controller acme sets its replicas (metadata.managedFields)"},
	} {
		if got := object(t, test.owner, test.entries...).HeldBy(test.field, []string{"gone"}); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestManagedFieldsOfAnyFormCostNoObjectAndLittleMemory(t *testing.T) {
	t.Parallel()
	var twenty, wide []string
	for i := range 200 {
		twenty = append(twenty, booked(fmt.Sprint("m", i), "scale", setsReplicas))
	}
	for i := range 2000 {
		wide = append(wide, fmt.Sprintf(`"k:{\"name\":\"c%d\"}":{"f:resources":{"f:limits":{"f:cpu":{}}}}`, i))
	}
	for name, entries := range map[string][]string{
		"no entries":            nil,
		"200 managers":          twenty,
		"2,000 containers":      {booked("m", "resize", `{"f:spec":{"f:containers":{`+strings.Join(wide, ",")+`}}}`)},
		"a long name":           {booked(strings.Repeat("m", 1<<20), "scale", setsReplicas)},
		"long fields":           {booked("m", "resize", `{"f:spec":{"f:resources":{"f:limits":{"f:`+strings.Repeat("c", 1<<20)+`":{}}}}}`)},
		"deep":                  {booked("m", "scale", `{"f:spec":{"f:replicas":`+strings.Repeat(`{"a":`, 5000)+"1"+strings.Repeat("}", 5000)+`}}`)},
		"fields as text":        {booked("m", "resize", `"f:replicas"`)},
		"fields as a list":      {booked("m", "resize", `["f:replicas"]`)},
		"fields null":           {booked("m", "resize", `null`)},
		"entries of no kind":    {`null`, `1`, `"resize"`, `["f:replicas"]`, `{"manager":1,"subresource":{},"fieldsV1":"f:replicas"}`},
		"containers of no kind": {booked("m", "resize", `{"f:spec":{"f:containers":{"k:{":{},"k:1":1,"v:":null,"k:{\"name\":\"\"}":{"f:resources":{"f:limits":{"f:cpu":{}}}}}}}`)},
	} {
		w := object(t, "", entries...)
		if w.Name != "checkout" || len(w.Managers) > 16 {
			t.Errorf("%s: %q with %d managers", name, w.Name, len(w.Managers))
		}
		size := 0
		for _, m := range w.Managers {
			for _, f := range append(m.Fields, m.Name, m.Subresource) {
				size += len(f)
			}
		}
		if size > 16<<10 {
			t.Errorf("%s: %d bytes are kept", name, size)
		}
	}
	var w kube.Workload
	for _, text := range []string{`"f:replicas"`, `{"f:replicas":1}`, `null`, `17`} {
		if err := json.Unmarshal([]byte(`{"metadata":{"name":"checkout","managedFields":`+text+`}}`), &w); err != nil || w.Name != "checkout" || len(w.Managers) != 0 {
			t.Errorf("%s: %v, %+v", text, err, w.Managers)
		}
	}
}

func TestAWatchKeepsObjectsWhoseManagedFieldsCannotBeReadAndOfPodsOnlyWhoResizedThem(t *testing.T) {
	s := kubetest.New(t)
	s.Shop(2, resources)
	put := func(path, entries string) {
		s.Edit(path, func(o kubetest.Object) {
			kubetest.Sub(o, "metadata")["managedFields"] = kubetest.Parse(t, `{"a":`+entries+`}`)["a"]
		})
	}
	put(kubetest.PodPath(0), `[`+booked("kube-controller-manager", "", resized)+`,`+booked("trimtab", "resize", resized)+`]`)
	c := watch(t, s)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, err := c.PodOf("shop", "checkout-7d9f-aa", "")
	if err != nil || p.Managers != nil {
		t.Fatalf("of the list: %v, %+v", err, p)
	}
	put(kubetest.Deployment, `{"resize":["f:replicas"]}`)
	put(kubetest.PodPath(0), `[7,`+booked("eks", "resize", resized)+`]`)
	eventually(t, "the pod was resized", func() bool {
		p, err := c.PodOf("shop", "checkout-7d9f-aa", "")
		return err == nil && p.HeldBy("app/cpu", nil) != ""
	})
	if w, err := c.WorkloadOf(checkout); err != nil || len(w.Managers) != 0 {
		t.Errorf("%v, %+v", err, w)
	}
}
