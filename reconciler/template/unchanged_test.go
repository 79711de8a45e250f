package template

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// scene is a template that is bound under policy p on two clusters, and what may
// change around it.
type scene struct {
	*Reconciler
	template *unstructured.Unstructured
	binding  *workv1alpha2.ResourceBinding
	p, other *policyv1alpha1.PropagationPolicy
	clusters []string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{
		Reconciler: &Reconciler{written: writecache.New[workv1alpha2.Binding](clocktesting.NewFakePassiveClock(noon))},
		p:          policy("p", "apps/v1"), other: policy("a-better-one", "apps/v1"), clusters: []string{"m1", "m2"},
	}
	s.p.Spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	s.template = web(propagation.ClaimOf(s.p))
	s.template.SetLabels(map[string]string{"app": "web", policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-p"})
	s.template.Object["spec"] = map[string]any{"replicas": int64(2), "template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "main", "image": "web:1"}},
	}}}
	candidates := func() []policyv1alpha1.Policy { return []policyv1alpha1.Policy{s.p, s.other} }
	s.chooser = chooser{
		find: func(_ context.Context, ref propagation.PolicyRef) (policyv1alpha1.Policy, bool, error) {
			i := slices.IndexFunc(candidates(), func(p policyv1alpha1.Policy) bool { return p.GetName() == ref.Name })
			if i < 0 {
				return nil, false, nil
			}
			return candidates()[i], true, nil
		},
		candidates: func(selector.Resource) ([]policyv1alpha1.Policy, error) { return candidates(), nil },
		exists:     func(context.Context, string, string) (bool, error) { return false, nil },
	}
	s.dryRun = binderFor(0, nil)
	s.dryRun.replicas = interpreter.Native().Replicas
	s.dryRun.decide = func(ctx context.Context, b workv1alpha2.Binding) (placement.Decision, bool, error) {
		return binderFor(0, nil, s.clusters...).decide(ctx, b)
	}
	st := state{key: key(), template: s.template, policy: s.p}
	if _, err := s.dryRun.run(t.Context(), &st); err != nil {
		t.Fatal(err)
	}
	s.binding = st.desired.(*workv1alpha2.ResourceBinding)
	s.binding.ResourceVersion = "20"
	return s
}

// container returns the template's only container.
func (s *scene) container() map[string]any {
	spec := s.template.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	return spec["containers"].([]any)[0].(map[string]any)
}

func (s *scene) scale(n int64) { s.template.Object["spec"].(map[string]any)["replicas"] = n }

func (s *scene) label(key, value string) {
	labels := s.template.GetLabels()
	labels[key] = value
	s.template.SetLabels(labels)
}

// TestPlacementUnchanged changes the image of a template, and one more thing.
func TestPlacementUnchanged(t *testing.T) {
	cases := map[string]struct {
		edit func(s *scene)
		want bool
	}{
		"nothing else":                    {func(*scene) {}, true},
		"a label that no policy asks for": {func(s *scene) { s.label("tier", "prod") }, true},
		"its scheduling is suspended": {func(s *scene) {
			s.binding.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: ptr.To(true)}
		}, true},

		"its replicas": {func(s *scene) { s.scale(3) }, false},
		"what a replica requests": {func(s *scene) {
			s.container()["resources"] = map[string]any{"requests": map[string]any{"cpu": "1"}}
		}, false},
		"replicas that cannot be read":        {func(s *scene) { s.template.Object["spec"].(map[string]any)["replicas"] = "many" }, false},
		"a label, so that another policy":     {func(s *scene) { s.label("app", "api") }, false},
		"another owner propagates it":         {func(s *scene) { s.label(workv1alpha2.ResourceTemplateClaimedByLabel, "MultiClusterService") }, false},
		"its claim is gone":                   {func(s *scene) { propagation.Unclaim(s.template) }, false},
		"it is claimed by another policy":     {func(s *scene) { propagation.ClaimOf(s.other).Set(s.template) }, false},
		"it is being deleted":                 {func(s *scene) { s.template.SetDeletionTimestamp(&metav1.Time{Time: noon}) }, false},
		"it was made anew":                    {func(s *scene) { s.template.SetUID("t-2") }, false},
		"its binding is being deleted":        {func(s *scene) { s.binding.DeletionTimestamp = &metav1.Time{Time: noon} }, false},
		"its binding is another template's":   {func(s *scene) { s.binding.Spec.Resource.APIVersion = "example.com/v1" }, false},
		"its binding was edited":              {func(s *scene) { s.binding.Spec.Replicas = 9 }, false},
		"its binding lost its claim":          {func(s *scene) { propagation.Unclaim(s.binding) }, false},
		"its policy is being deleted":         {func(s *scene) { deleted(s.p) }, false},
		"its policy waits for an override":    {func(s *scene) { dependent(s.p) }, false},
		"its policy was made anew":            {func(s *scene) { s.p.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] = "id-2" }, false},
		"its policy suspends dispatching":     {func(s *scene) { s.p.Spec.Suspension = &policyv1alpha1.Suspension{Dispatching: ptr.To(true)} }, false},
		"its policy overwrites what is there": {func(s *scene) { s.p.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite }, false},
		"its policy names other clusters": {func(s *scene) {
			s.p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
		}, false},
		"its policy is lazy, and was changed before": {func(s *scene) {
			s.p.Spec.ActivationPreference = policyv1alpha1.LazyActivation
			s.p.Spec.PreserveResourcesOnDeletion = ptr.To(true)
		}, false},
		"a cluster joins":  {func(s *scene) { s.clusters = append(s.clusters, "m3") }, false},
		"a cluster leaves": {func(s *scene) { s.clusters = s.clusters[:1] }, false},
		"a rebalance is asked for": {func(s *scene) {
			s.binding.Spec.RescheduleTriggeredAt = &metav1.Time{Time: noon.AddDate(0, 0, 1)}
		}, false},
		"the binding was written since": {func(s *scene) {
			later := s.binding.DeepCopy()
			later.ResourceVersion = "21"
			s.written.Wrote(later)
		}, false},
		"the binding that was written is the one given": {func(s *scene) { s.written.Wrote(s.binding.DeepCopy()) }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.template.SetResourceVersion("8")
			s.container()["image"] = "web:2"
			tc.edit(s)
			before := s.binding.DeepCopy()
			if got := s.PlacementUnchanged(t.Context(), s.template, s.binding); got != tc.want {
				t.Errorf("settled = %v, want %v", got, tc.want)
			}
			if !propagation.SameDecision(before, s.binding) {
				t.Error("the binding was changed")
			}
		})
	}
}

// TestDelay: which writes of bindings are delayed.
func TestDelay(t *testing.T) {
	const wait = 50 * time.Millisecond
	image := func(s *scene) { s.container()["image"] = "web:2" }
	cases := map[string]struct {
		edit func(s *scene)
		want time.Duration
	}{
		"nothing":                        {func(*scene) {}, 0},
		"its image":                      {image, wait},
		"its replicas":                   {func(s *scene) { s.scale(3) }, 0},
		"its image, and it is claimed":   {func(s *scene) { image(s); propagation.Unclaim(s.template) }, 0},
		"its image, and it is let go":    {func(s *scene) { image(s); deleted(s.p); deleted(s.other) }, 0},
		"its image, and it has no more":  {func(s *scene) { image(s); s.binding = nil }, 0},
		"its image, and a cluster joins": {func(s *scene) { image(s); s.clusters = append(s.clusters, "m3") }, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			tc.edit(s)
			st := state{key: key(), template: s.template}
			if s.binding != nil {
				st.binding = s.binding
			}
			if next, err := decide(t.Context(), s.Reconciler, &st); err != nil || next.Done {
				t.Fatalf("decide: done %v, err %v", next.Done, err)
			}
			p := writer{debounce: func(templatestore.Key, string) time.Duration { return wait }}
			if got := p.delay(&st); got != tc.want {
				t.Errorf("gives way for %s, want %s", got, tc.want)
			}
		})
	}
}
