package rollup_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestFormer checks that, for a template that is not placed as wanted, clusters
// are judged by what they have, which counts as the latest version only if it is.
func TestFormer(t *testing.T) {
	digest, err := propagation.Digest(template("Deployment"))
	if err != nil {
		t.Fatal(err)
	}
	const older = `{"replicas":5,"updatedReplicas":5,"readyReplicas":5,"resourceTemplateGeneration":1}`
	silence := rollup.Silence{Cause: "unreachable", Since: at.Time}
	refused := placement.Record{Reason: workv1alpha2.BindingReasonQuotaExceeded, Message: "no room"}
	of := func(record placement.Record, bound, sent string) rollup.Part {
		b := binding(record, "a", "b", "c")
		metav1.SetMetaDataAnnotation(&b.ObjectMeta, propagation.DigestAnnotation, bound)
		works := []*workv1alpha1.Work{
			work("a", "True", "", workv1alpha2.ResourceHealthy, older),
			work("b", "True", "", workv1alpha2.ResourceUnhealthy, older),
			work("c", "True", "", workv1alpha2.ResourceHealthy, older),
		}
		for _, w := range works {
			w.Annotations = map[string]string{propagation.DigestAnnotation: sent}
		}
		return rollup.PartOf(template("Deployment"), b, works, rollup.Silences{"c": silence})
	}
	want := func(reason string, outdated bool) rollup.Part {
		return rollup.Part{Object: "Deployment shop/web", State: rollup.Progressing, Reason: reason, Former: []rollup.ClusterPart{
			{Name: "a", Replicas: 5, Applied: !outdated, Outdated: outdated},
			{Name: "b", State: rollup.Progressing, Reason: "not ready: 5/5 ready, 0/5 available", Replicas: 5, Applied: !outdated, Outdated: outdated},
			{Name: "c", State: rollup.Unknown, Reason: "unreachable since 2026-01-01 00:00 UTC; last heard: healthy", Silence: &silence, Outdated: outdated},
		}}
	}
	for name, tc := range map[string]struct{ got, want rollup.Part }{
		"what it asks for now is refused":              {of(refused, digest, digest), want("no room", false)},
		"its latest version is held back":              {of(refused, "before", "before"), want("no policy carries it any more: its latest version stays on the control plane", true)},
		"it was edited once no policy carried it":      {of(succeeded, "before", "before"), want("no policy carries it any more: its latest version stays on the control plane", true)},
		"it was refused, and what runs is older still": {of(refused, digest, "before"), want("no room", true)},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestByBindingAndWorks checks that, where the template is not known, Works still
// show whether clusters have what the binding is for.
func TestByBindingAndWorks(t *testing.T) {
	b := binding(succeeded, "a", "b")
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, propagation.DigestAnnotation, "latest")
	sent, before := work("a", "True", "", workv1alpha2.ResourceHealthy, ""), work("b", "True", "", workv1alpha2.ResourceHealthy, "")
	sent.Annotations = map[string]string{propagation.DigestAnnotation: "latest"}
	before.Annotations = map[string]string{propagation.DigestAnnotation: "before"}
	want := rollup.Part{Object: "Deployment shop/web", Clusters: []rollup.ClusterPart{
		{Name: "a", Replicas: 5, Applied: true}, {Name: "b", Replicas: 5, State: rollup.Progressing, Reason: "latest version not sent yet", Outdated: true},
	}}
	if diff := cmp.Diff(want, rollup.PartOf(nil, b, []*workv1alpha1.Work{sent, before}, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
