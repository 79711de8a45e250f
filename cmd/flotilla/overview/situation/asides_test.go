package situation_test

import (
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestSuspended: what changes are kept from is well, and is not told to be ready: an older
// version may run there.
func TestSuspended(t *testing.T) {
	one := &workv1alpha2.Suspension{}
	one.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: []string{"west"}}
	all := &workv1alpha2.Suspension{}
	all.Dispatching = ptr.To(true)
	for name, tc := range map[string]struct {
		suspension *workv1alpha2.Suspension
		want       string
	}{
		"nothing is": {nil, "All is ready: clusters 2/2, sources 0/0, Kustomizations 0/0, templates 1/1."},
		"one cluster is": {one, `All that is not suspended is ready, but 1 thing is worth a look: clusters 2/2, sources 0/0, Kustomizations 0/0, templates 0/1 (1 suspended).

CLUSTERS
  NAME  READY  VERSION  MODE  NODES  TEMPLATES          AGENT
  east  True   -        Push  -      1/1                -
  west  True   -        Push  -      0/1 (1 suspended)  -

WORTH A LOOK
   1  Deployment shop/web: dispatching is suspended: an older version, or nothing, may run in west
      next: take spec.suspension out of its policy once changes are to go there; flotilla explain deployment/web -n shop
`},
		"all are": {all, "All that is not suspended is ready, but 1 thing is worth a look: clusters 2/2, sources 0/0, Kustomizations 0/0, templates 0/1 (1 suspended)."},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
			b.Spec.Suspension = tc.suspension
			for _, cluster := range []string{"east", "west"} {
				s.Cluster(member(cluster), time.Time{})
				b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster})
				b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true, Health: workv1alpha2.ResourceHealthy})
			}
			propagation.ClaimOf(carrying("web", 1)).Set(b)
			s.Binding(b)
			f := s.Fleet()
			said := string(text(t, f, false))
			if !strings.Contains(tc.want, "\n") {
				said, _, _ = strings.Cut(said, "\n")
			}
			if diff := cmp.Diff(tc.want, said); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if !f.Ready {
				t.Error("what somebody suspended is a problem")
			}
		})
	}
}

// TestSuspendedKustomization: one that is suspended counts as not ready, and is no problem.
func TestSuspendedKustomization(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	ks.Spec.Suspend = true
	s.Kustomization(ks)
	said, _, _ := strings.Cut(string(text(t, s.Fleet(), false)), "\n")
	if want := "All that is not suspended is ready: clusters 1/1, sources 0/0, Kustomizations 0/1, templates 0/0."; said != want {
		t.Errorf("it says %q, want %q", said, want)
	}
}
