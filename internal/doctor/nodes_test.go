package doctor

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// crowd is a cluster of two nodes of 8 cores, of which a DaemonSet takes one each, with 6 pods of the shop
// that request 2 cores and one of somebody else that requests 3.
func crowd(t *testing.T) (*kubetest.Server, *config.Config) {
	t.Helper()
	s := kubetest.New(t)
	s.Shop(6, `{"requests":{"cpu":"2","memory":"1Gi"},"limits":{"cpu":"4"}}`)
	s.Put("/api/v1/nodes/n2", `{"kind":"Node","apiVersion":"v1","status":{"allocatable":{"cpu":"8","memory":"16Gi"}}}`)
	for i, owner := range []string{"DaemonSet", "DaemonSet", "Job", "Job"} {
		cores, phase := []string{"1", "1", "3", "8"}[i], []string{"Running", "Running", "Pending", "Succeeded"}[i]
		s.Put(fmt.Sprintf("/api/v1/namespaces/other/pods/p%d", i), fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"ownerReferences":[{"kind":%q,"name":"x","uid":"x","controller":true}]},
			"spec":{"nodeName":%q,"containers":[{"name":"c","resources":{"requests":{"cpu":%q}}}]},"status":{"phase":%q}}`, owner, []string{"n1", "n2", "", ""}[i], cores, phase))
	}
	cfg, err := config.Parse("cluster.yaml", fmt.Appendf(nil, kubetest.ShopFile, t.TempDir(), t.TempDir(), s.Kubeconfig(), "", "recommend"))
	if err != nil {
		t.Fatal(err)
	}
	return s, cfg
}

func TestNodesAreCountedBeforeAndAfterWhatTrimtabFindsThatPodsNeed(t *testing.T) {
	_, cfg := crowd(t)
	need := 3.0
	for _, c := range []struct {
		money map[string]view.Money
		want  string
	}{
		// Three pods of 2 cores fit into the 7 that are left of a node, the other three with none of 3.
		{nil, "2 nodes: the requests of 7 pods need 3 by best fit (at least 3), 1 more than there are\n"},
		{map[string]view.Money{"checkout": {Reserved: 12, Pods: 6}}, "2 nodes: the requests of 7 pods need 3 by best fit (at least 3), 1 more than there are\n"},
		{map[string]view.Money{"checkout": {Reserved: 12, Pods: 6, Needed: &need}}, "2 nodes: the requests of 7 pods need 3 by best fit (at least 3), 1 more than there are\n" +
			"if the pods of checkout reserved what trimtab finds that they need, they would need 1 by best fit (at least 1)\n"},
	} {
		var out strings.Builder
		if err := Nodes(t.Context(), cfg, c.money, &out); err != nil || out.String() != c.want {
			t.Errorf("%v\n%s\nwant\n%s", err, out.String(), c.want)
		}
	}
}

func TestWithoutTheRightToListAllPodsNodesAreNotCounted(t *testing.T) {
	s, cfg := crowd(t)
	s.Fail(func(r *http.Request) int {
		if strings.HasSuffix(r.URL.Path, "/pods") {
			return http.StatusForbidden
		}
		return 0
	})
	var out strings.Builder
	if err := Nodes(t.Context(), cfg, nil, &out); err != nil || !strings.Contains(out.String(), "not allowed to list the pods of all namespaces") {
		t.Errorf("%v, %s", err, out.String())
	}
}
