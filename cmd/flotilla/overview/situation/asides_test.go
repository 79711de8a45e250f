package situation_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestSuspended: a template whose dispatching is suspended is healthy, but not counted as ready, because
// an older version may run.
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
			s.Binding(b, nil)
			f := s.Fleet()
			output := string(text(t, f, false))
			if !strings.Contains(tc.want, "\n") {
				output, _, _ = strings.Cut(output, "\n")
			}
			if diff := cmp.Diff(tc.want, output); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if !f.Ready {
				t.Error("what somebody suspended is a problem")
			}
		})
	}
}

// TestSuspendedKustomization: a suspended Kustomization does not count as ready, and is a note instead of
// a problem: nothing else shows why commits are not applied.
func TestSuspendedKustomization(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	ks.Spec.Suspend = true
	s.Kustomization(ks)
	other := ks.DeepCopy()
	other.Name = "shop"
	s.Kustomization(other)
	repository := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fleet"}}
	repository.Spec.Suspend = true
	s.Source(repository)
	artifacts := &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "images"}}
	artifacts.Spec.Suspend = true
	s.Source(artifacts)
	golden(t, "halted.txt", text(t, s.Fleet(), false))
}

// TestWhatWasRewritten: a history that was rewritten, and taken, is no problem, and worth a look.
func TestWhatWasRewritten(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	repository := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fleet"}}
	repository.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Succeeded"}}
	repository.Status.Artifact = &meta.Artifact{Revision: "main@sha1:2", Metadata: map[string]string{"gitops.flotilla.io/history": lineage.Aside.Text("main@sha1:1")}}
	s.Source(repository)
	want := []situation.Note{{
		Kind: "GitRepository", Namespace: "default", Name: "fleet", Message: "the history was rewritten, and does not contain main@sha1:1: that was taken",
		Next: "if nobody meant it, see who pushed; to have such held back: flotilla annotate gitrepository fleet -n default gitops.flotilla.io/rollback-protection=hold",
	}}
	if diff := cmp.Diff(want, s.Fleet().Notes); diff != "" || len(s.Fleet().Problems) > 0 {
		t.Errorf("problems %v, notes (-want +got):\n%s", s.Fleet().Problems, diff)
	}
}

// TestDriftThatIsNotHeardOf: drift that a cluster reported before it stopped to answer is not reported as
// present.
func TestDriftThatIsNotHeardOf(t *testing.T) {
	for name, tc := range map[string]struct {
		drifted []string
		want    string
	}{
		"of all clusters":                 {[]string{"east", "west"}, "it is left so: east: a; west: a"},
		"of one that is silent":           {[]string{"gone"}, ""},
		"of one that is silent, and more": {[]string{"east", "gone"}, "it is left so: east: it was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
			b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Drifted, Status: metav1.ConditionTrue, Message: "east: a; west: a"}}
			for _, cluster := range []string{"east", "gone", "west"} {
				c := member(cluster)
				if cluster == "gone" {
					c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionUnknown, Reason: clusterv1alpha1.ClusterStatusUnknownReason, LastTransitionTime: metav1.NewTime(now)}}
				}
				s.Cluster(c, time.Time{})
				item := workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true, Health: workv1alpha2.ResourceHealthy}
				if slices.Contains(tc.drifted, cluster) {
					item.Drift = "it was removed"
				}
				b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster})
				b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, item)
			}
			propagation.ClaimOf(carrying("web", 1)).Set(b)
			s.Binding(b, nil)
			var messages []string
			for _, n := range s.Fleet().Notes {
				messages = append(messages, n.Message)
			}
			if got := strings.Join(messages, "\n"); (got == "") != (tc.want == "") || !strings.HasSuffix(got, tc.want) {
				t.Errorf("notes %q, want %q", got, tc.want)
			}
		})
	}
}

// TestReleasedBeforeItWasPlaced: a template whose policy was deleted before it was placed runs
// nowhere, and the last decision is not reported as its problem.
func TestReleasedBeforeItWasPlaced(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	b.Annotations = map[string]string{workv1alpha2.SchedulingDecisionAnnotation: `{"reason":"NoClusterFit","message":"0/1 clusters are available"}`}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	s.Binding(b, nil)
	f := s.Fleet()
	want := []situation.Note{{Kind: "Deployment", Namespace: "shop", Name: "web", Message: "no policy carries it, so that it runs nowhere", Next: "flotilla explain deployment/web -n shop"}}
	if diff := cmp.Diff(want, f.Notes); diff != "" || len(f.Problems) > 0 || f.Templates.Total > 0 {
		t.Errorf("templates %v, problems %v, notes (-want +got):\n%s", f.Templates, f.Problems, diff)
	}
}
