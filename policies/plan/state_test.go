package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// TestStateIsOnTheCopyAlone: what was preserved is a label of the new copy, not of the pods that it makes, for as long as its task
// is there; a label that its template has itself stays as it is.
func TestStateIsOnTheCopyAlone(t *testing.T) {
	task := workv1alpha2.GracefulEvictionTask{FromCluster: "away", PurgeMode: policyv1alpha1.PurgeModeDirectly, PreservedLabelState: map[string]string{"app.io/id": "7", "tier": "state"}}
	gracefully := task
	gracefully.PurgeMode = policyv1alpha1.PurgeModeGracefully
	for name, tc := range map[string]struct {
		tasks []workv1alpha2.GracefulEvictionTask
		want  map[string]string
	}{
		"the one before had to go first":   {[]workv1alpha2.GracefulEvictionTask{task}, map[string]string{"app.io/id": "7", "tier": "gold"}},
		"the one before runs on meanwhile": {[]workv1alpha2.GracefulEvictionTask{gracefully}, map[string]string{"tier": "gold"}},
		"the move is over":                 {nil, map[string]string{"tier": "gold"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			in.Template = object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, uid: u, labels: {tier: gold}}, spec: {template: {metadata: {labels: {app: web}}}}}`)
			spec := in.Binding.BindingSpec()
			spec.Clusters, spec.GracefulEvictionTasks = spec.Clusters[:1], tc.tasks
			plans, err := plan.Works(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range plans {
				if p.Cluster != spec.Clusters[0].Name {
					continue
				}
				manifest := &unstructured.Unstructured{}
				if err := manifest.UnmarshalJSON(p.Work.Spec.Workload.Manifests[0].Raw); err != nil {
					t.Fatal(err)
				}
				got := map[string]string{}
				for _, key := range []string{"app.io/id", "tier"} {
					if value, ok := manifest.GetLabels()[key]; ok {
						got[key] = value
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("labels (-want +got):\n%s", diff)
				}
				pods, _, _ := unstructured.NestedStringMap(manifest.Object, "spec", "template", "metadata", "labels")
				if diff := cmp.Diff(map[string]string{"app": "web"}, pods); diff != "" {
					t.Errorf("labels of its pods (-want +got):\n%s", diff)
				}
				return
			}
			t.Fatalf("no Work in %s: %+v", spec.Clusters[0].Name, plans)
		})
	}
}
