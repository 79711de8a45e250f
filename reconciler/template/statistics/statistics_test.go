package statistics_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/template/statistics"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	p, q = propagation.PolicyRef{Namespace: "shop", Name: "p", ID: "id-p"}, propagation.PolicyRef{Namespace: "shop", Name: "q", ID: "id-q"}
	none propagation.PolicyRef
	kind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	web  = templatestore.Key{GroupVersionKind: kind, Namespace: "shop", Name: "web"}
	api  = templatestore.Key{GroupVersionKind: kind, Namespace: "shop", Name: "api"}
)

func claim(obj metav1.Object, by propagation.PolicyRef) {
	if by == none {
		return
	}
	propagation.ClaimOf(&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: by.Namespace, Name: by.Name, Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: by.ID},
	}}).Set(obj)
}

func template(by propagation.PolicyRef) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	claim(obj, by)
	return obj
}

// bound returns the binding of a template, with the reason of its decision, if there is
// one, and the message of a cluster.
func bound(key templatestore.Key, by propagation.PolicyRef, reason, cluster string) workv1alpha2.Binding {
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: key.Kind, Namespace: key.Namespace, Name: key.Name}
	claim(b, by)
	if reason != "" {
		placement.Decision{Record: placement.Record{Reason: reason, Message: "0/1 clusters", At: metav1.NewTime(noon)}}.Put(b)
	}
	if cluster != "" {
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{
			{ClusterName: "z", AppliedMessage: "later"}, {ClusterName: "m1", AppliedMessage: cluster}, {ClusterName: "a"},
		}
	}
	return b
}

func TestCounts(t *testing.T) {
	fits, refused := workv1alpha2.BindingReasonSuccess, workv1alpha2.BindingReasonNoClusterFit
	unfit := statistics.Problem{Object: "Deployment shop/web", Message: "0/1 clusters", At: noon}
	cases := map[string]struct {
		do       func(c *statistics.Policies)
		want     [2]statistics.Count // of p and q
		reported []string            // policies, sorted
	}{
		"nothing": {do: func(*statistics.Policies) {}, want: [2]statistics.Count{{Complete: true}, {Complete: true}}},
		"a template that is claimed, looked at and bound": {
			do: func(c *statistics.Policies) {
				c.Template(web, template(p), false)
				c.Visited(web, p, "", noon)
				c.Binding(bound(web, p, fits, ""), false, noon)
			},
			want: [2]statistics.Count{{Templates: 1, Bindings: 1, Placed: 1, Complete: true}, {Complete: true}}, reported: []string{"p", "p", "p"},
		},
		"the same again": {
			do: func(c *statistics.Policies) {
				for range 3 {
					c.Template(web, template(p), false)
					c.Visited(web, p, "", noon)
					c.Binding(bound(web, p, fits, ""), false, noon)
				}
			},
			want: [2]statistics.Count{{Templates: 1, Bindings: 1, Placed: 1, Complete: true}, {Complete: true}}, reported: []string{"p", "p", "p"},
		},
		"one that nobody claims": {
			do:   func(c *statistics.Policies) { c.Template(web, template(none), true); c.Visited(web, none, "", noon) },
			want: [2]statistics.Count{{Complete: true}, {Complete: true}},
		},
		"one that was not looked at yet": {
			do:   func(c *statistics.Policies) { c.Template(web, template(p), true) },
			want: [2]statistics.Count{{Templates: 1}, {Complete: true}}, reported: []string{"p"},
		},
		"one that another policy takes": {
			do: func(c *statistics.Policies) {
				c.Template(web, template(p), false)
				c.Binding(bound(web, p, fits, ""), false, noon)
				c.Template(web, template(q), false)
				c.Binding(bound(web, q, refused, ""), false, noon)
				c.Visited(web, q, "", noon)
			},
			want:     [2]statistics.Count{{Complete: true}, {Templates: 1, Bindings: 1, Complete: true, Problems: []statistics.Problem{unfit}}},
			reported: []string{"p", "p", "p", "p", "q", "q", "q"},
		},
		"one that is gone": {
			do: func(c *statistics.Policies) {
				c.Template(web, template(p), false)
				c.Visited(web, p, "is wrong", noon)
				c.Binding(bound(web, p, refused, ""), false, noon)
				c.Template(web, nil, false)
				c.Unbound(bound(web, p, refused, ""))
			},
			want: [2]statistics.Count{{Complete: true}, {Complete: true}}, reported: []string{"p", "p", "p", "p", "p"},
		},
		"a kind that is not watched any more": {
			do: func(c *statistics.Policies) {
				c.Template(web, template(p), false)
				c.Template(api, template(q), false)
				c.Forget(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
				c.Forget(kind)
			},
			want: [2]statistics.Count{{Complete: true}, {Complete: true}}, reported: []string{"p", "p", "q", "q"},
		},
		"a problem that goes": {
			do: func(c *statistics.Policies) {
				c.Template(web, template(p), false)
				c.Visited(web, p, "is wrong", noon)
				c.Visited(web, p, "", noon)
			},
			want: [2]statistics.Count{{Templates: 1, Complete: true}, {Complete: true}}, reported: []string{"p", "p", "p"},
		},
		"a problem that stays keeps its time": {
			do: func(c *statistics.Policies) {
				c.Template(web, template(p), false)
				c.Visited(web, p, "is wrong", noon)
				c.Visited(web, p, "is wrong", noon.Add(time.Hour))
			},
			want:     [2]statistics.Count{{Templates: 1, Complete: true, Problems: []statistics.Problem{{Object: "Deployment shop/web", Message: "is wrong", At: noon}}}, {Complete: true}},
			reported: []string{"p", "p"},
		},
		"a problem of before the start has no time": {
			do:       func(c *statistics.Policies) { c.Template(web, template(p), true); c.Visited(web, p, "is wrong", noon) },
			want:     [2]statistics.Count{{Templates: 1, Complete: true, Problems: []statistics.Problem{{Object: "Deployment shop/web", Message: "is wrong"}}}, {Complete: true}},
			reported: []string{"p", "p"},
		},
		"a cluster that refuses": {
			do: func(c *statistics.Policies) { c.Binding(bound(web, p, fits, "denied"), false, noon) },
			want: [2]statistics.Count{{Bindings: 1, Placed: 1, Complete: true, Problems: []statistics.Problem{
				{Object: "Deployment shop/web", Message: "m1: denied", At: noon}}}, {Complete: true}},
			reported: []string{"p"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var reported []string
			c := statistics.New(func(ref propagation.PolicyRef) { reported = append(reported, ref.Name) })
			tc.do(c)
			slices.Sort(reported)
			if diff := cmp.Diff(tc.want, [2]statistics.Count{c.Of(p), c.Of(q)}); diff != "" {
				t.Errorf("counts of p and q (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.reported, reported); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if (tc.want[0].Templates > 0) != slices.Contains(c.Kinds(p), kind) {
				t.Errorf("kinds of p: %v", c.Kinds(p))
			}
		})
	}
}

// TestUntaken: templates that a policy should carry and does not are reported, as soon as all have had a pass.
func TestUntaken(t *testing.T) {
	wrong := []statistics.Problem{{Object: "Deployment shop/web", Message: "is wrong", At: noon}}
	cases := map[string]struct {
		do    func(c *statistics.Policies)
		want  []statistics.Problem
		known bool
	}{
		"nothing is wrong": {do: func(c *statistics.Policies) { c.Template(web, template(p), false) }, known: true},
		"nobody has claimed it": {do: func(c *statistics.Policies) {
			c.Template(web, template(none), false)
			c.Visited(web, p, "is wrong", noon)
		}, want: wrong, known: true},
		"another policy has": {do: func(c *statistics.Policies) { c.Template(web, template(q), false); c.Visited(web, p, "is wrong", noon) }, want: wrong, known: true},
		"it has claimed it":  {do: func(c *statistics.Policies) { c.Template(web, template(p), false); c.Visited(web, p, "is wrong", noon) }, known: true},
		"its binding has a problem": {do: func(c *statistics.Policies) {
			c.Binding(bound(web, p, workv1alpha2.BindingReasonNoClusterFit, ""), false, noon)
		}, known: true},
		"something was not looked at since the start": {do: func(c *statistics.Policies) {
			c.Template(api, template(none), true)
			c.Visited(web, p, "is wrong", noon)
		}, want: wrong},
		"it was since": {do: func(c *statistics.Policies) { c.Template(api, template(none), true); c.Visited(api, none, "", noon) }, known: true},
		"what was not is gone": {do: func(c *statistics.Policies) {
			c.Template(api, template(none), true)
			c.Template(web, template(q), true)
			c.Template(api, nil, false)
			c.Forget(kind)
		}, known: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := statistics.New(func(propagation.PolicyRef) {})
			tc.do(c)
			got, known := c.Untaken(p)
			if diff := cmp.Diff(tc.want, got); diff != "" || known != tc.known {
				t.Errorf("known = %v (-want +got):\n%s", known, diff)
			}
		})
	}
}

func TestLast(t *testing.T) {
	at := func(object string, minutes int) statistics.Problem {
		problem := statistics.Problem{Object: object, Message: "wrong", At: noon.Add(time.Duration(minutes) * time.Minute)}
		if minutes < 0 {
			problem.At = time.Time{}
		}
		return problem
	}
	reported := func(object string, minutes int) *policyv1alpha1.PolicyProblem {
		return &policyv1alpha1.PolicyProblem{Object: object, Message: "wrong", At: metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))}
	}
	cases := map[string]struct {
		reported *policyv1alpha1.PolicyProblem
		problems []statistics.Problem
		want     *policyv1alpha1.PolicyProblem
	}{
		"none is left":                            {reported("a", 0), nil, nil},
		"the latest":                              {nil, []statistics.Problem{at("a", 1), at("b", 3), at("c", 2)}, reported("b", 3)},
		"of several the first by name":            {nil, []statistics.Problem{at("b", 1), at("a", 1)}, reported("a", 1)},
		"one that was told stays after a restart": {reported("a", 1), []statistics.Problem{at("a", -1), at("b", -1)}, reported("a", 1)},
		"until another begins":                    {reported("a", 1), []statistics.Problem{at("a", -1), at("b", 2)}, reported("b", 2)},
		"or it ends":                              {reported("a", 1), []statistics.Problem{at("b", -1)}, reported("b", 60)},
		"one that began before does not replace":  {reported("b", 3), []statistics.Problem{at("a", 1), at("b", 3)}, reported("b", 3)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, statistics.Last(tc.reported, tc.problems, noon.Add(time.Hour))); diff != "" {
				t.Errorf("last problem (-want +got):\n%s", diff)
			}
		})
	}
}

// BenchmarkEvent is the cost of one template event among 10,000 templates of
// 1,000 policies.
func BenchmarkEvent(b *testing.B) {
	c := statistics.New(func(propagation.PolicyRef) {})
	refs := make([]propagation.PolicyRef, 1000)
	for i := range refs {
		refs[i] = propagation.PolicyRef{Namespace: "shop", Name: fmt.Sprint("p", i), ID: fmt.Sprint(i)}
	}
	for i := range 10_000 {
		key := web
		key.Name = fmt.Sprint("web-", i)
		c.Template(key, template(refs[i%len(refs)]), true)
	}
	objs := [2]*unstructured.Unstructured{template(refs[0]), template(refs[1])}
	key := web
	key.Name = "web-0"
	for i := 0; b.Loop(); i++ {
		c.Template(key, objs[i%2], false)
	}
}
