package admission

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

func TestBorders(t *testing.T) {
	of := func(namespace, name string) *workv1alpha2.ResourceBinding {
		return &workv1alpha2.ResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"},
			Spec:       workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}},
		}
	}
	cases := map[string]struct {
		who      user.DefaultInfo // nobody in particular
		old, obj *workv1alpha2.ResourceBinding
		sub      string
		refused  bool
	}{
		"a template of its namespace":           {obj: of("shop", "a")},
		"one of another namespace":              {obj: of("karmada-cluster", "a"), refused: true},
		"one of no namespace":                   {obj: of("", "a"), refused: true},
		"one that becomes another's":            {old: of("shop", "a"), obj: of("karmada-cluster", "a"), refused: true},
		"another of another namespace":          {old: of("other", "a"), obj: of("other", "b"), refused: true},
		"one that was another's, with a label":  {old: of("other", "a"), obj: of("other", "a")},
		"one that was another's, brought home":  {old: of("other", "a"), obj: of("shop", "a")},
		"a status":                              {old: of("shop", "a"), obj: of("other", "a"), sub: "status"},
		"an administrator's":                    {who: user.DefaultInfo{Name: "root", Groups: []string{"system:masters"}}, obj: of("other", "a")},
		"one of the control plane's own loops'": {who: user.DefaultInfo{Name: "system:serviceaccount:karmada-system:flotilla-controllers"}, obj: of("other", "a")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			operation, old := admission.Create, runtime.Object(nil)
			if tc.old != nil {
				operation, old = admission.Update, tc.old
			}
			kind := workv1alpha2.GroupVersion.WithKind("ResourceBinding")
			a := admission.NewAttributesRecord(tc.obj, old, kind, "shop", "b", workv1alpha2.GroupVersion.WithResource("resourcebindings"), tc.sub,
				operation, nil, false, &tc.who)
			if err := NewBorders().Validate(t.Context(), a, nil); (err != nil) != tc.refused {
				t.Errorf("= %v, refused: %t", err, tc.refused)
			}
		})
	}
}

// TestWorksThatBringRights checks that a user who may write Works can neither create nor
// change those that bring rights.
func TestWorksThatBringRights(t *testing.T) {
	const label = "unifiedauth.flotilla.io/rights-in"
	plain := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
	rights := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: "w", Labels: map[string]string{label: ""}}}
	clusters := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: "w", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "east", Controller: ptr.To(true)},
	}}}
	for name, tc := range map[string]struct {
		who      user.DefaultInfo
		old, obj *workv1alpha1.Work
		sub      string
		refused  bool
	}{
		"any other Work":            {old: plain, obj: plain},
		"one that is made":          {obj: rights, refused: true},
		"one that is changed":       {old: rights, obj: rights, refused: true},
		"one that is one no more":   {old: rights, obj: plain, refused: true},
		"one that becomes one":      {old: plain, obj: rights, refused: true},
		"one of the Cluster's":      {old: clusters, obj: plain, refused: true},
		"its status":                {old: rights, obj: rights, sub: "status"},
		"by an administrator":       {who: user.DefaultInfo{Name: "root", Groups: []string{"system:masters"}}, old: rights, obj: plain},
		"by the loops":              {who: user.DefaultInfo{Name: "system:apiserver"}, obj: rights},
		"by an agent, who lets go":  {who: user.DefaultInfo{Name: "system:karmada:agent:east"}, old: rights, obj: rights},
		"by an account beside them": {who: user.DefaultInfo{Name: "system:serviceaccount:karmada-system:default"}, obj: rights, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			operation, old := admission.Create, runtime.Object(nil)
			if tc.old != nil {
				operation, old = admission.Update, tc.old
			}
			a := admission.NewAttributesRecord(tc.obj, old, workv1alpha1.GroupVersion.WithKind("Work"), "karmada-es-east", "w", workv1alpha1.GroupVersion.WithResource("works"), tc.sub,
				operation, nil, false, &tc.who)
			if err := NewBorders().Validate(t.Context(), a, nil); (err != nil) != tc.refused {
				t.Errorf("= %v, refused: %t", err, tc.refused)
			}
		})
	}
}
