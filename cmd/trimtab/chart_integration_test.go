//go:build integration

package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/dashboards"
	"github.com/trimtab/trimtab/internal/doctor"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// This file tries the chart, and the Kustomize files that are made from it.

const (
	chartDir     = "../../deploy/helm/trimtab"
	kustomizeDir = "../../deploy/kustomize"
)

// monitored has the server offer the API of the Prometheus Operator.
var monitored = []string{"--api-versions", "monitoring.coreos.com/v1"}

// valueSets are what the chart is tried with, by what is special to each.
var valueSets = map[string][]string{
	"observe":           nil,
	"recommend all":     {"--set", "mode=recommend"},
	"recommend one":     {"--set", "mode=recommend,namespaces={shop}"},
	"recommend two":     {"--set", "mode=recommend,namespaces={shop,default},rbac.nodes=false"},
	"act all":           {"--set", "mode=act"},
	"act one":           {"--set", "mode=act,namespaces={shop},config.pool.name=Shop"},
	"act replicas":      {"--set", "mode=act,namespaces={shop},act.resize=false"},
	"pods that go":      {"--set", "mode=act,namespaces={shop},act.deletionCost=true"},
	"start values":      {"--set", "mode=act,namespaces={shop},startValues.enabled=true,events=off"},
	"VPA":               {"--set", "mode=recommend,vpa.recommender=trimtab,events=all"},
	"SLOs of objects":   {"--set", "mode=recommend,slo.objects=true"},
	"boards":            {"--set", "dashboards.enabled=true"},
	"keda":              {"--set", "mode=recommend,namespaces={shop},keda.enabled=true,keda.tlsSecret=trimtab-keda"},
	"volume":            {"--set", "persistence.enabled=true,persistence.storageClass=fast"},
	"own NATS, agents":  {"--set", "mode=act,nats.mode=external,nats.url=tls://nats:4222,nats.tlsSecret=nats-tls,agent.enabled=true,agent.write=true,agent.perf=true,agent.leaf=tls://nats:7422"},
	"agents that watch": {"--set", "mode=recommend,nats.mode=external,nats.url=nats://nats:4222,nats.credentialsSecret=nats,agent.enabled=true"},
	"own account":       {"--set", "serviceAccount.name=mine,rbac.create=false,networkPolicy.enabled=false,mode=recommend"},
}

// helm runs helm on the chart.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(kubetest.Tools(t), "helm"), args...)
	home := t.TempDir()
	c.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var out, bad bytes.Buffer
	c.Stdout, c.Stderr = &out, &bad
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("helm %q: %w: %s%s", args, err, out.String(), bad.String())
	}
	return out.String(), nil
}

// rendered is what the chart makes of values, without what is run by helm alone.
func rendered(t *testing.T, more ...string) string {
	t.Helper()
	out, err := helm(t, append([]string{"template", "trimtab", chartDir, "--namespace", "trimtab", "--kube-version", "1.37.1"}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// manifests are the objects of a rendering, by KIND NAMESPACE/NAME.
func manifests(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for doc := range strings.SplitSeq("\n"+text, "\n---") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if len(o) == 0 {
			continue
		}
		meta, _ := o["metadata"].(map[string]any)
		space, _ := meta["namespace"].(string)
		all[fmt.Sprintf("%v %s/%v", o["kind"], space, meta["name"])] = o
	}
	return all
}

func field(o map[string]any, path ...string) any {
	for i, name := range path {
		if i == len(path)-1 {
			return o[name]
		}
		o, _ = o[name].(map[string]any)
	}
	return o
}

func TestTheChartRendersForEverySetOfValuesAndRefusesAMisspeltOne(t *testing.T) {
	for name, values := range valueSets {
		if _, err := helm(t, append([]string{"lint", "--strict", chartDir}, values...)...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		all := manifests(t, rendered(t, append(monitored, values...)...))
		for key, o := range all {
			switch {
			case strings.HasPrefix(key, "ConfigMap ") && field(o, "data", "trimtab.yaml") != nil:
				for file, text := range o["data"].(map[string]any) {
					if _, err := config.Parse(file, []byte(fmt.Sprint(text))); err != nil {
						t.Errorf("%s: %s: %v", name, file, err)
					}
				}
			case strings.Contains(key, "Role "), strings.Contains(key, "ClusterRole "):
				// Annotations have no smaller right: only who asks for them gives it, in the pods' own namespace.
				may := map[string]string{"pods that go Role shop/trimtab": "patch pods"}[name+" "+key]
				if why := excess(o); why != may {
					t.Errorf("%s: %s allows %q, want %q", name, key, why, may)
				}
			}
		}
		if all["ServiceMonitor trimtab/trimtab"] == nil || all["PrometheusRule trimtab/trimtab"] == nil {
			t.Errorf("%s: with the API of the Prometheus Operator there is no ServiceMonitor or PrometheusRule", name)
		}
		for key := range manifests(t, rendered(t, values...)) {
			if strings.HasPrefix(key, "ServiceMonitor ") || strings.HasPrefix(key, "PodMonitor ") || strings.HasPrefix(key, "PrometheusRule ") {
				t.Errorf("%s: without that API there is %s", name, key)
			}
		}
	}
	for _, wrong := range []string{"mod=act", "mode=off", "nats.mode=external", "keda.enabled=true", "agent.enabled=true", "persistence.size=2 GB", "namespaces={Shop}", "startValues.enabled=true", "events=some"} {
		if out, err := helm(t, "lint", "--strict", chartDir, "--set", wrong); err == nil {
			t.Errorf("--set %s passes: %s", wrong, out)
		}
	}
}

// excess says what a Role allows that no mode needs; "": nothing.
func excess(role map[string]any) string {
	allowed := []string{"create configmaps", "get configmaps", "update configmaps", "patch pods/resize", "patch configmaps", "create events", "patch events", "patch verticalpodautoscalers/status",
		"get deployments/scale", "patch deployments/scale", "get statefulsets/scale", "patch statefulsets/scale", "get rollouts/scale", "patch rollouts/scale",
		"get prometheusservicelevels", "get servicelevelobjectives", "get slos", "list slis", "list datasources"}
	for _, looked := range []string{"pods", "resourcequotas", "limitranges", "deployments", "statefulsets", "daemonsets", "rollouts", "replicasets", "horizontalpodautoscalers", "poddisruptionbudgets", "scaledobjects", "verticalpodautoscalers", "nodes"} {
		allowed = append(allowed, "get "+looked, "list "+looked, "watch "+looked)
	}
	rules, _ := role["rules"].([]any)
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		for _, resource := range rule["resources"].([]any) {
			for _, verb := range rule["verbs"].([]any) {
				one := fmt.Sprintf("%v %v", verb, resource)
				if !slices.Contains(allowed, one) {
					return one
				}
				if strings.HasSuffix(one, " configmaps") && verb != "create" && rule["resourceNames"] == nil {
					return one + " of any name"
				}
			}
		}
	}
	return ""
}

func TestTheBoardsAndRulesOfTheChartAreTheGeneratedOnes(t *testing.T) {
	all := manifests(t, rendered(t, append(monitored, "--set", "dashboards.enabled=true")...))
	boards := 0
	for file, text := range dashboards.Generate() {
		name, isBoard := strings.CutSuffix(file, ".json")
		if !isBoard {
			var want map[string]any
			if err := yaml.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			if got := field(all["PrometheusRule trimtab/trimtab"], "spec"); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Error("the PrometheusRule is not what the package generates")
			}
			continue
		}
		boards++
		o := all["ConfigMap trimtab/trimtab-board-"+name]
		if got := fmt.Sprint(field(o, "data", file)); strings.TrimSpace(got) != strings.TrimSpace(string(text)) {
			t.Errorf("board %s is not what the package generates: add a link in files/", name)
		}
		if field(o, "metadata", "labels", "grafana_dashboard") != "1" || len(text) > 1<<20 {
			t.Errorf("board %s: labels %v, %d bytes", name, field(o, "metadata", "labels"), len(text))
		}
	}
	if boards < 6 {
		t.Errorf("%d boards", boards)
	}
}

// kustomized is what the Kustomize files of a mode must have, from the chart.
func kustomized(t *testing.T) map[string]string {
	t.Helper()
	render := func(mode string) []string {
		out := rendered(t, "--no-hooks", "--set", "mode="+mode)
		out = strings.ReplaceAll(out, "app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: kustomize")
		var docs []string
		for doc := range strings.SplitSeq("\n"+out, "\n---\n") {
			if strings.Contains(doc, "kind:") {
				docs = append(docs, strings.TrimSpace(doc))
			}
		}
		return docs
	}
	base := render("observe")
	files := map[string]string{"base/trimtab.yaml": strings.Join(base, "\n---\n") + "\n"}
	known := manifests(t, files["base/trimtab.yaml"])
	for _, mode := range []string{"recommend", "act"} {
		var added, changed []string
		for _, doc := range render(mode) {
			key := slices.Collect(maps.Keys(manifests(t, doc)))[0]
			switch {
			case known[key] == nil:
				added = append(added, doc)
			case !slices.Contains(base, doc):
				changed = append(changed, doc)
			}
		}
		files["overlays/"+mode+"/added.yaml"] = strings.Join(added, "\n---\n") + "\n"
		files["overlays/"+mode+"/changed.yaml"] = strings.Join(changed, "\n---\n") + "\n"
	}
	return files
}

func TestTheKustomizeFilesAreWhatTheChartRenders(t *testing.T) {
	for name, want := range kustomized(t) {
		file := filepath.Join(kustomizeDir, name)
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != want {
			t.Errorf("%s is not what the chart renders (%v): run this test with -update", name, err)
		}
	}
	for mode, dir := range map[string]string{"observe": "base", "recommend": "overlays/recommend", "act": "overlays/act"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(kubetest.Tools(t), "kubectl"), "kustomize", filepath.Join(kustomizeDir, dir)).Output()
		if err != nil {
			t.Fatal(err)
		}
		got := manifests(t, strings.ReplaceAll(string(out), "managed-by: kustomize", "managed-by: Helm"))
		delete(got, "Namespace /trimtab")
		want := manifests(t, rendered(t, "--no-hooks", "--set", "mode="+mode))
		for key := range want {
			if fmt.Sprint(got[key]) != fmt.Sprint(want[key]) {
				t.Errorf("%s: %s is\n%v\nwant\n%v", mode, key, got[key], want[key])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %v", mode, slices.Sorted(maps.Keys(got)))
		}
	}
}

// everything lists all objects of a server but what it makes itself without end.
func everything(r *kubetest.Real) []string {
	kinds := strings.Fields(r.Kubectl("api-resources", "--verbs=list", "-o", "name"))
	kinds = slices.DeleteFunc(kinds, func(k string) bool { return strings.HasPrefix(k, "events") || strings.HasPrefix(k, "leases") })
	all := strings.Split(r.Kubectl("get", strings.Join(kinds, ","), "-A", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}`), "\n")
	slices.Sort(all)
	return all
}

// clean checks that nothing is there that was not there before.
func clean(t *testing.T, r *kubetest.Real, before []string) {
	t.Helper()
	r.Until("what was made is gone", func() bool { return slices.Equal(everything(r), before) })
}

func TestARealAPIServerTakesTheChartAndKeepsNothingOfIt(t *testing.T) {
	r := kubetest.StartReal(t)
	r.Shop(1, `{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"cpu":"500m","memory":"128Mi"}}`)
	r.Kubectl("delete", "namespace", "trimtab")
	before := everything(r)

	t.Run("ObserveOnlyIsInstalledInOneCommandAndRemovedInOneWithNothingLeft", func(t *testing.T) {
		r.Kubectl("apply", "-k", filepath.Join(kustomizeDir, "base"))
		// The namespace enforces the restricted standard: a pod shows that it holds.
		r.Until("the pod is admitted", func() bool {
			return strings.Contains(r.Kubectl("-n", "trimtab", "get", "pod", "-o", "name"), "pod/trimtab-")
		})
		r.Kubectl("delete", "-k", filepath.Join(kustomizeDir, "base"), "--wait=false")
		r.Kubectl("-n", "trimtab", "delete", "pod", "--all", "--force", "--grace-period=0") // no kubelet ends it
		clean(t, r, before)
	})

	r.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: trimtab, labels: {pod-security.kubernetes.io/enforce: restricted}}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: agents, labels: {pod-security.kubernetes.io/enforce: privileged}}\n")
	r.Until("service accounts are there", func() bool {
		_, err := r.Try("", "-n", "trimtab", "get", "serviceaccount", "default")
		return err == nil
	})
	t.Run("WithoutTheKindsOfSlothAndPyrraThereIsNoObjectiveToImport", func(t *testing.T) {
		client, err := kube.Open(kube.Config{Kubeconfig: r.Kubeconfig("admin")})
		if err != nil {
			t.Fatal(err)
		}
		if found, err := client.Objectives(t.Context(), ""); err != nil || len(found) != 0 {
			t.Errorf("%v, %v", found, err)
		}
	})
	t.Run("EveryObjectOfEverySetOfValuesIsTaken", func(t *testing.T) {
		for _, name := range []string{"trimtab", "mine"} { // the admission of a pod asks for it
			r.Kubectl("-n", "trimtab", "create", "serviceaccount", name)
			defer r.Kubectl("-n", "trimtab", "delete", "serviceaccount", name)
		}
		for name, values := range valueSets {
			if out, err := r.Try(rendered(t, values...), "apply", "--dry-run=server", "-f", "-"); err != nil {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
	})
	t.Run("EverythingButTheAgentIsAdmittedByRestrictedAndTheAgentByPrivilegedWithoutBeingIt", func(t *testing.T) { admitted(t, r) })
	t.Run("HelmInstallsAndUninstallsWithNothingLeft", func(t *testing.T) {
		before := everything(r)
		config := "--kubeconfig=" + r.Kubeconfig("admin")
		if _, err := helm(t, "install", "trimtab", chartDir, "--namespace", "trimtab", config); err != nil {
			t.Fatal(err)
		}
		if len(everything(r)) < len(before)+5 {
			t.Error("nothing was installed")
		}
		if _, err := helm(t, "uninstall", "trimtab", "--namespace", "trimtab", config); err != nil {
			t.Fatal(err)
		}
		r.Kubectl("-n", "trimtab", "delete", "pod", "--all", "--force", "--grace-period=0") // no kubelet ends it
		clean(t, r, before)
	})
	for _, mode := range []string{"observe", "recommend", "act"} {
		t.Run("TheAccountOfMode"+strings.ToUpper(mode[:1])+mode[1:]+"MayDoWhatItMustAndNoMore", func(t *testing.T) { accountOf(t, r, mode) })
	}
}

// admitted tries the pods of every rendering as pods, since Pod Security only warns of a
// Deployment.
func admitted(t *testing.T, r *kubetest.Real) {
	for name, values := range valueSets {
		mode := "observe"
		if strings.Contains(strings.Join(values, " "), "mode=recommend") {
			mode = "recommend"
		}
		agents := 0
		for key, o := range manifests(t, rendered(t, values...)) {
			template, _ := field(o, "spec", "template").(map[string]any)
			if key == "CronJob trimtab/trimtab-restore" {
				template, _ = field(o, "spec", "jobTemplate", "spec", "template").(map[string]any)
			}
			if o["kind"] == "Pod" {
				template = o
			}
			if template == nil {
				continue
			}
			spec, _ := template["spec"].(map[string]any)
			delete(spec, "serviceAccountName") // it is not installed
			try := func(namespace string) error {
				pod, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "tried", "namespace": namespace}, "spec": spec})
				if err != nil {
					t.Fatal(err)
				}
				_, err = r.Try(string(pod), "create", "--dry-run=server", "-f", "-")
				return err
			}
			err := try("trimtab")
			if o["kind"] != "DaemonSet" {
				if err != nil {
					t.Errorf("%s: %s is not admitted: %v", name, key, err)
				}
				continue
			}
			agents++
			if err == nil || !strings.Contains(err.Error(), "restricted") {
				t.Errorf("%s: the agent in a restricted namespace: %v", name, err)
			}
			if err := try("agents"); err != nil {
				t.Errorf("%s: the agent in a privileged namespace: %v", name, err)
			}
			for _, word := range []string{"privileged", "hostPID", "hostNetwork", "hostIPC", "SYS_ADMIN"} {
				if strings.Contains(fmt.Sprint(spec), word+":true") || strings.Contains(fmt.Sprint(spec), word+" ") && word == "SYS_ADMIN" {
					t.Errorf("%s: the agent has %s", name, word)
				}
			}
			if mode == "recommend" && strings.Contains(fmt.Sprint(spec), "add:") {
				t.Errorf("%s: the agent has a capability in mode recommend", name)
			}
		}
		if want := strings.Contains(name, "agents"); want != (agents > 0) {
			t.Errorf("%s: %d DaemonSets", name, agents)
		}
	}
}

// accountOf tries what the ServiceAccount of a mode may do, with its own token.
func accountOf(t *testing.T, r *kubetest.Real, mode string) {
	text := rendered(t, "--no-hooks", "--set", "mode="+mode+",namespaces={shop}")
	r.Apply(text)
	defer func() {
		if _, err := r.Try(text, "delete", "--wait=false", "-f", "-"); err != nil {
			t.Error(err)
		}
	}()
	file := r.Account("trimtab", "trimtab")
	for question, from := range map[string]string{
		"list pods":                       "recommend",
		"watch horizontalpodautoscalers":  "recommend",
		"list nodes":                      "recommend",
		"patch pods/resize":               "act",
		"patch deployments/scale":         "act",
		"create events.events.k8s.io":     "act",
		"patch pods":                      "never",
		"patch deployments":               "never",
		"delete pods":                     "never",
		"create pods/exec":                "never",
		"get secrets":                     "never",
		"create rolebindings":             "never",
		"update configmaps/somebody-else": "never",
	} {
		verb, what, _ := strings.Cut(question, " ")
		args := []string{"--kubeconfig", file, "auth", "can-i", verb, what, "-n", "shop"}
		if resource, sub, ok := strings.Cut(what, "/"); ok && resource != "configmaps" {
			args = []string{"--kubeconfig", file, "auth", "can-i", verb, resource, "--subresource", sub, "-n", "shop"}
		}
		out, _ := exec.CommandContext(t.Context(), filepath.Join(kubetest.Tools(t), "kubectl"), args...).Output() // it exits with 1 for no
		want := from == mode || from == "recommend" && mode == "act"
		if got := strings.HasPrefix(string(out), "yes"); got != want {
			t.Errorf("%s: may %s: %s", mode, question, out)
		}
	}
	journal := ""
	if mode == "act" {
		journal = ", journal: trimtab"
	}
	cfg, err := config.Parse("trimtab.yaml", fmt.Appendf(nil, `
objective: drf
pool: {cpu: 6, resources: {replicas: 10}}
kubernetes: {kubeconfig: %q%s}
workloads:
  - name: checkout
    slo: {latency: 100ms, fraction: 0.95}
    match: {kubernetes: {namespace: shop, deployment: checkout}}
    knob: {cpu: {min: 0.1, max: 2}, resources: {replicas: {min: 1, max: 4}}}
    mode: %s
`, file, journal, strings.Replace(mode, "observe", "recommend", 1)))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = doctor.CheckCluster(context.WithoutCancel(t.Context()), cfg, &out)
	if mode == "observe" != (err != nil) {
		t.Errorf("%s: trimtab check kubernetes: %v\n%s", mode, err, out.String())
	}
}
