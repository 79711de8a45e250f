package admission

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/author"
)

// TestAuthors checks that a template gets the user who last wrote its content as author,
// whatever he writes into the annotation himself.
func TestAuthors(t *testing.T) {
	const (
		alice = `[{"user":"alice","groups":["dev"]}]`
		robot = `[{"user":"system:serviceaccount:shop:default"}]`
	)
	users := map[string]user.Info{
		"alice": &user.DefaultInfo{Name: "alice", Groups: []string{"dev", "system:authenticated"}},
		"robot": &user.DefaultInfo{Name: "system:serviceaccount:shop:default", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:shop"}},
		"admin": &user.DefaultInfo{Name: "root", Groups: []string{"system:masters"}},
		"loops": &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{"system:masters"}},
		"house": &user.DefaultInfo{Name: "system:serviceaccount:kube-system:x", Groups: []string{"system:serviceaccounts:kube-system"}},
		"guest": &user.DefaultInfo{Name: "system:serviceaccount:karmada-system:x", Groups: []string{"system:serviceaccounts:karmada-system"}},
		"apart": &user.DefaultInfo{Name: "system:serviceaccount:karmada-system:flotilla-controllers", Groups: []string{"system:serviceaccounts:karmada-system"}},
	}
	type is struct {
		by       string // the annotation
		replicas int32
		touch    func(*appsv1.Deployment)
	}
	build := func(s *is) runtime.Object {
		if s == nil {
			return nil
		}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To(s.replicas)}}
		if s.by != "" {
			d.Annotations = map[string]string{"propagation.flotilla.io/applied-by": s.by}
		}
		if s.touch != nil {
			s.touch(d)
		}
		return d
	}
	for name, tc := range map[string]struct {
		who, subresource string
		old, now         *is
		want             string
	}{
		"made by a user":                           {who: "alice", now: &is{}, want: alice},
		"made by an account":                       {who: "robot", now: &is{}, want: robot},
		"made in the name of another":              {who: "robot", now: &is{by: alice}, want: robot},
		"made by an administrator":                 {who: "admin", now: &is{}},
		"brought back by an administrator":         {who: "admin", now: &is{by: alice}, want: alice},
		"made by loops":                            {who: "loops", now: &is{}},
		"made by an account of kube-system":        {who: "house", now: &is{}, want: `[{"user":"system:serviceaccount:kube-system:x"}]`},
		"made by an account beside the loops'":     {who: "guest", now: &is{}, want: `[{"user":"system:serviceaccount:karmada-system:x"}]`},
		"made by loops that run apart":             {who: "apart", now: &is{}},
		"changed by another":                       {who: "robot", old: &is{by: alice, replicas: 1}, now: &is{by: alice, replicas: 2}, want: robot},
		"an administrator's, changed":              {who: "robot", old: &is{replicas: 1}, now: &is{replicas: 2}, want: robot},
		"changed by an administrator":              {who: "admin", old: &is{by: alice, replicas: 1}, now: &is{by: alice, replicas: 2}, want: alice},
		"taken over by an administrator":           {who: "admin", old: &is{by: alice}, now: &is{}},
		"changed by loops":                         {who: "apart", old: &is{by: alice, replicas: 1}, now: &is{by: alice, replicas: 2}, want: alice},
		"written again as it was, by another":      {who: "robot", old: &is{by: alice, replicas: 1}, now: &is{replicas: 1}, want: alice},
		"its author changed alone":                 {who: "alice", old: &is{by: robot, replicas: 1}, now: &is{by: alice, replicas: 1}, want: robot},
		"its author taken off":                     {who: "alice", old: &is{by: alice, replicas: 1}, now: &is{replicas: 1}, want: alice},
		"its author taken off along with a change": {who: "alice", old: &is{by: robot, replicas: 1}, now: &is{replicas: 2}, want: alice},
		"an administrator's, given an author":      {who: "alice", old: &is{replicas: 1}, now: &is{by: robot, replicas: 1}},
		"its status, with another author":          {who: "alice", subresource: "status", old: &is{by: robot}, now: &is{by: alice, replicas: 7}, want: robot},
		"what does not reach members": {who: "robot", old: &is{by: alice}, now: &is{by: alice, touch: func(d *appsv1.Deployment) {
			d.Finalizers, d.ResourceVersion, d.Generation = []string{"x"}, "7", 3
			d.OwnerReferences = []metav1.OwnerReference{{Name: "x"}}
			d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
			d.Status.Replicas = 7
			d.APIVersion, d.Kind = "apps/v1", "Deployment"
		}}, want: alice},
		"a label": {who: "robot", old: &is{by: alice}, now: &is{by: alice, touch: func(d *appsv1.Deployment) { d.Labels = map[string]string{"a": "b"} }}, want: robot},
	} {
		t.Run(name, func(t *testing.T) {
			operation := admission.Create
			if tc.old != nil {
				operation = admission.Update
			}
			obj := build(tc.now)
			a := admission.NewAttributesRecord(obj, build(tc.old), schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "shop", "web",
				schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, tc.subresource, operation, nil, false, users[tc.who])
			if err := NewAuthors().Admit(t.Context(), a, nil); err != nil {
				t.Fatal(err)
			}
			if got := obj.(*appsv1.Deployment).Annotations["propagation.flotilla.io/applied-by"]; got != tc.want {
				t.Errorf("applied by %q, want %q", got, tc.want)
			}
		})
	}
}

// TestAuthorsOfWhatIsNotJudgedHere checks that every user who changed an override or a Work
// is one of its authors, because only members judge the content.
func TestAuthorsOfWhatIsNotJudgedHere(t *testing.T) {
	const alice, robot, both = `[{"user":"alice"}]`, `[{"user":"robot"}]`, `[{"user":"alice"},{"user":"robot"}]`
	var crowd author.Authors
	for i := range 16 {
		crowd = append(crowd, author.Author{User: fmt.Sprintf("user-%02d", i)})
	}
	build := func(kind, by, says string) runtime.Object {
		if says == "" {
			return nil
		}
		notes := map[string]string{}
		if by != "" {
			notes["propagation.flotilla.io/applied-by"] = by
		}
		if kind == "Work" {
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: notes}}
			work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(says)}}}
			return work
		}
		out := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "spec": map[string]any{"says": says}}}
		out.SetAnnotations(notes)
		return out
	}
	for name, tc := range map[string]struct {
		who            *user.DefaultInfo
		by, was, is    string // was is empty where there was nothing
		want, refusals string
	}{
		"made":                                      {who: &user.DefaultInfo{Name: "robot"}, by: alice, is: "a", want: robot},
		"changed by another":                        {who: &user.DefaultInfo{Name: "robot"}, by: alice, was: "a", is: "b", want: both},
		"changed by its author":                     {who: &user.DefaultInfo{Name: "alice"}, by: alice, was: "a", is: "b", want: alice},
		"changed by one of them":                    {who: &user.DefaultInfo{Name: "robot"}, by: both, was: "a", is: "b", want: both},
		"an administrator's, changed":               {who: &user.DefaultInfo{Name: "robot"}, was: "a", is: "b", want: robot},
		"changed by an administrator":               {who: &user.DefaultInfo{Name: "root", Groups: []string{"system:masters"}}, by: both, was: "a", is: "b", want: both},
		"by whom cannot be read":                    {who: &user.DefaultInfo{Name: "robot"}, by: "alice", was: "a", is: "b", want: "alice"},
		"written again as it was":                   {who: &user.DefaultInfo{Name: "robot"}, by: alice, was: "a", is: "a", want: alice},
		"changed by one too many":                   {who: &user.DefaultInfo{Name: "robot"}, by: crowd.String(), was: "a", is: "b", want: crowd.String(), refusals: "delete it and make it anew"},
		"changed by one of as many as there can be": {who: &user.DefaultInfo{Name: "user-07"}, by: crowd.String(), was: "a", is: "b", want: crowd.String()},
	} {
		for _, kind := range []string{"OverridePolicy", "ClusterOverridePolicy", "Work"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				gvk, operation := schema.GroupVersionKind{Group: "policy.karmada.io", Version: "v1alpha1", Kind: kind}, admission.Update
				if kind == "Work" {
					gvk.Group = "work.karmada.io"
				}
				if tc.was == "" {
					operation = admission.Create
				}
				obj := build(kind, tc.by, tc.is)
				a := admission.NewAttributesRecord(obj, build(kind, tc.by, tc.was), gvk, "shop", "x", schema.GroupVersionResource{}, "", operation, nil, false, tc.who)
				err := NewAuthors().Admit(t.Context(), a, nil)
				if tc.refusals == "" && err != nil || tc.refusals != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.refusals)) {
					t.Errorf("error %v, want %q", err, tc.refusals)
				}
				if got := obj.(metav1.Object).GetAnnotations()["propagation.flotilla.io/applied-by"]; got != tc.want {
					t.Errorf("applied by %q, want %q", got, tc.want)
				}
			})
		}
	}
}

// TestWhoLabelsAnOverride checks that a change of an override's labels or annotations, which
// reach no member, makes nobody its author.
func TestWhoLabelsAnOverride(t *testing.T) {
	build := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "OverridePolicy", "spec": map[string]any{"says": "a"}}}
	}
	now := build()
	now.SetAnnotations(map[string]string{"team": "x"})
	now.SetLabels(map[string]string{"team": "x"})
	a := admission.NewAttributesRecord(now, build(), schema.GroupVersionKind{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "OverridePolicy"},
		"shop", "x", schema.GroupVersionResource{}, "", admission.Update, nil, false, &user.DefaultInfo{Name: "robot"})
	if err := NewAuthors().Admit(t.Context(), a, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"team": "x"}, now.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// TestWhatHasAuthors checks which kinds have authors: those that reach members or decide what
// does.
func TestWhatHasAuthors(t *testing.T) {
	for name, tc := range map[string]struct {
		kind      schema.GroupVersionKind
		namespace string
		want      bool
	}{
		"a custom resource":       {schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, "shop", true},
		"one without a namespace": {schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, "", true},
		"a Work":                  {schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha1", Kind: "Work"}, "karmada-es-east", true},
		"an override":             {schema.GroupVersionKind{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "OverridePolicy"}, "shop", true},
		"a policy, which says where and not what": {schema.GroupVersionKind{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "PropagationPolicy"}, "shop", false},
		"a Secret of the control plane's":         {schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "karmada-cluster", false},
		"an Event":                                {schema.GroupVersionKind{Version: "v1", Kind: "Event"}, "shop", false},
		"a question":                              {schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "SelfSubjectAccessReview"}, "", false},
	} {
		if got := authored(tc.kind, tc.namespace); got != tc.want {
			t.Errorf("%s has an author: %v, want %v", name, got, tc.want)
		}
	}
}

// TestContentOfCustomResources compares objects of kinds without a Go type in the server.
func TestContentOfCustomResources(t *testing.T) {
	gadget := func(size int64, status string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{"size": size}, "status": map[string]any{"phase": status},
		}}
	}
	got := []bool{sameContent(gadget(1, "a"), gadget(1, "b")), sameContent(gadget(1, "a"), gadget(2, "a"))}
	if diff := cmp.Diff([]bool{true, false}, got); diff != "" {
		t.Errorf("same (-want +got):\n%s", diff)
	}
}
