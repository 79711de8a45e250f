package dependency_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// webTemplate is the template whose references are judged.
func webTemplate() selector.Resource {
	return selector.Resource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
}

func secret(namespace, name string) kinds.Dependency {
	return kinds.Dependency{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}
}

func storageClass(name string) kinds.Dependency {
	return kinds.Dependency{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass", Name: name}
}

// TestDivide: a template draws from its own namespace; from elsewhere, what an
// administrator, the other namespace, or the past lets it.
func TestDivide(t *testing.T) {
	own, other, third, wide := secret("shop", "a"), secret("bank", "b"), secret("post", "c"), storageClass("fast")
	grant := func(change ...func(*dependency.Grant)) []dependency.Grant {
		g := dependency.Grant{
			Namespace: "bank",
			From:      []dependency.GrantFrom{{Group: "apps", Kind: "StatefulSet", Namespace: "shop"}, {Group: "apps", Kind: "Deployment", Namespace: "shop"}},
			To:        []dependency.GrantTo{{Kind: "ConfigMap"}, {Kind: "Secret"}},
		}
		for _, f := range change {
			f(&g)
		}
		return []dependency.Grant{g}
	}
	onlyOwn, none := []kinds.Dependency{own}, []kinds.Dependency(nil)
	foreign, withOther := []kinds.Dependency{other, third, wide}, []kinds.Dependency{own, other}
	cases := map[string]struct {
		scope              dependency.ReferenceScope
		permitted, refused []kinds.Dependency
	}{
		"nobody lets it": {dependency.ReferenceScope{}, onlyOwn, foreign},
		"a template of no namespace reaches everywhere": {
			dependency.ReferenceScope{Template: selector.Resource{APIVersion: "x.io/v1", Kind: "Tenant", Name: "t"}}, []kinds.Dependency{own, other, third, wide}, none,
		},
		"a cluster-wide policy opens what has no namespace":     {dependency.ReferenceScope{Administered: true}, []kinds.Dependency{own, wide}, []kinds.Dependency{other, third}},
		"it opens namespaces, too":                              {dependency.ReferenceScope{Administered: true, Namespaces: []string{"post", "x"}}, []kinds.Dependency{own, third, wide}, []kinds.Dependency{other}},
		"it opens every namespace":                              {dependency.ReferenceScope{Administered: true, Namespaces: []string{"*"}}, []kinds.Dependency{own, other, third, wide}, none},
		"namespaces that no administrator opened":               {dependency.ReferenceScope{Namespaces: []string{"*"}}, onlyOwn, foreign},
		"there are no other patterns":                           {dependency.ReferenceScope{Administered: true, Namespaces: []string{"b*"}}, []kinds.Dependency{own, wide}, []kinds.Dependency{other, third}},
		"what has no namespace is kept":                         {dependency.ReferenceScope{Kept: []kinds.Dependency{storageClass("slow"), wide}}, []kinds.Dependency{own, wide}, []kinds.Dependency{other, third}},
		"only what was there is kept":                           {dependency.ReferenceScope{Kept: []kinds.Dependency{storageClass("slow")}}, onlyOwn, foreign},
		"what is kept has no namespace":                         {dependency.ReferenceScope{Kept: []kinds.Dependency{other}}, onlyOwn, foreign},
		"the other namespace grants all of the kind":            {dependency.ReferenceScope{Grants: grant()}, withOther, []kinds.Dependency{third, wide}},
		"it grants one by name":                                 {dependency.ReferenceScope{Grants: grant(func(g *dependency.Grant) { g.To[1].Name = "b" })}, withOther, []kinds.Dependency{third, wide}},
		"it grants another name":                                {dependency.ReferenceScope{Grants: grant(func(g *dependency.Grant) { g.To[1].Name = "x" })}, onlyOwn, foreign},
		"it grants another kind":                                {dependency.ReferenceScope{Grants: grant(func(g *dependency.Grant) { g.To = g.To[:1] })}, onlyOwn, foreign},
		"it grants a kind of the name in another group":         {dependency.ReferenceScope{Grants: grant(func(g *dependency.Grant) { g.To[1].Group = "x.io" })}, onlyOwn, foreign},
		"it grants another kind to refer":                       {dependency.ReferenceScope{Grants: grant(func(g *dependency.Grant) { g.From = g.From[:1] })}, onlyOwn, foreign},
		"it grants another namespace to refer":                  {dependency.ReferenceScope{Grants: grant(func(g *dependency.Grant) { g.From[1].Namespace = "post" })}, onlyOwn, foreign},
		"it grants another group to refer":                      {dependency.ReferenceScope{Grants: grant(func(g *dependency.Grant) { g.From[1].Group = "" })}, onlyOwn, foreign},
		"a grant is of its own namespace alone":                 {dependency.ReferenceScope{Grants: grant(func(g *dependency.Grant) { g.Namespace = "shop" })}, onlyOwn, foreign},
		"the second of two grants counts, too":                  {dependency.ReferenceScope{Grants: append([]dependency.Grant{{Namespace: "bank"}}, grant()...)}, withOther, []kinds.Dependency{third, wide}},
		"what belongs to no namespace cannot be granted by one": {dependency.ReferenceScope{Grants: []dependency.Grant{{From: grant()[0].From, To: []dependency.GrantTo{{Group: "storage.k8s.io", Kind: "StorageClass"}}}}}, onlyOwn, foreign},
		"a grant is no administrator: the rest stays as it was": {dependency.ReferenceScope{Grants: grant(), Namespaces: []string{"post"}}, withOther, []kinds.Dependency{third, wide}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.scope.Template.Kind == "" {
				tc.scope.Template = webTemplate()
			}
			permitted, refused := tc.scope.Divide([]kinds.Dependency{own, other, third, wide})
			if diff := cmp.Diff([][]kinds.Dependency{tc.permitted, tc.refused}, [][]kinds.Dependency{permitted, refused}); diff != "" {
				t.Errorf("permitted, refused (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOpen: only a cluster-wide policy that selects the template says how far it
// reaches.
func TestOpen(t *testing.T) {
	clusterWide := func(namespaces string, change ...func(*policyv1alpha1.ClusterPropagationPolicy)) policyv1alpha1.Policy {
		p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
		if namespaces != "" {
			p.Annotations = map[string]string{dependency.NamespacesAnnotation: namespaces}
		}
		p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
		for _, f := range change {
			f(p)
		}
		return p
	}
	namespaced := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "all", Annotations: map[string]string{dependency.NamespacesAnnotation: "*"},
	}}
	namespaced.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
	web, opened := webTemplate(), dependency.ReferenceScope{Template: webTemplate(), Administered: true}
	with := func(namespaces ...string) dependency.ReferenceScope {
		b := opened
		b.Namespaces = namespaces
		return b
	}
	cases := map[string]struct {
		policies []policyv1alpha1.Policy
		want     dependency.ReferenceScope
	}{
		"no policy":                     {nil, dependency.ReferenceScope{Template: web}},
		"one that lists no namespaces":  {[]policyv1alpha1.Policy{clusterWide("")}, opened},
		"one that lists some":           {[]policyv1alpha1.Policy{clusterWide("post, bank,")}, with("post", "bank")},
		"commas and blanks say nothing": {[]policyv1alpha1.Policy{clusterWide(" , ,")}, opened},
		"one that lists every one":      {[]policyv1alpha1.Policy{clusterWide("*")}, with("*")},
		"two add up":                    {[]policyv1alpha1.Policy{clusterWide("post"), clusterWide("bank")}, with("post", "bank")},
		"one of a namespace":            {[]policyv1alpha1.Policy{namespaced}, dependency.ReferenceScope{Template: web}},
		"one that selects something else": {[]policyv1alpha1.Policy{clusterWide("*", func(p *policyv1alpha1.ClusterPropagationPolicy) {
			p.Spec.ResourceSelectors[0].Name = "api"
		})}, dependency.ReferenceScope{Template: web}},
		"one that is being deleted": {[]policyv1alpha1.Policy{clusterWide("*", func(p *policyv1alpha1.ClusterPropagationPolicy) {
			p.DeletionTimestamp = &metav1.Time{}
		})}, dependency.ReferenceScope{Template: web}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := dependency.ReferenceScope{Template: web}
			for _, p := range tc.policies {
				got.Open(p)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("permitted and refused (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRelease: of what a template had before, what belongs to no namespace stays
// permitted.
func TestRelease(t *testing.T) {
	got := dependency.ReferenceScope{Template: webTemplate()}
	got.Release([]kinds.Dependency{secret("shop", "a"), storageClass("fast"), secret("bank", "b")})
	got.Release([]kinds.Dependency{storageClass("slow")})
	want := dependency.ReferenceScope{Template: webTemplate(), Kept: []kinds.Dependency{storageClass("fast"), storageClass("slow")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permitted and refused (-want +got):\n%s", diff)
	}
}

// TestForeign: what lies outside of the namespace of the template is foreign to it;
// nothing is to one of no namespace.
func TestForeign(t *testing.T) {
	cases := map[string]struct {
		namespace string
		all       []kinds.Dependency
		want      bool
	}{
		"nothing":             {"shop", nil, false},
		"all in its own":      {"shop", []kinds.Dependency{secret("shop", "a"), secret("shop", "b")}, false},
		"one in another":      {"shop", []kinds.Dependency{secret("shop", "a"), secret("bank", "b")}, true},
		"one of no namespace": {"shop", []kinds.Dependency{storageClass("fast")}, true},
		"an administrator's reaches into namespaces": {"", []kinds.Dependency{secret("bank", "b"), storageClass("fast")}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := dependency.Foreign(tc.namespace, tc.all); got != tc.want {
				t.Errorf("foreign = %t, want %t", got, tc.want)
			}
		})
	}
}

// TestGrantOf: a ReferenceGrant is read entry by entry; what is not as it should be
// grants nothing.
func TestGrantOf(t *testing.T) {
	const meta = `apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant, metadata: {namespace: bank, name: g}`
	cases := map[string]struct {
		object string
		want   dependency.Grant
	}{
		"as it should be": {
			`{` + meta + `, spec: {from: [{group: apps, kind: Deployment, namespace: shop}], to: [{group: "", kind: Secret}, {kind: ConfigMap, name: c}]}}`,
			dependency.Grant{
				Namespace: "bank", From: []dependency.GrantFrom{{Group: "apps", Kind: "Deployment", Namespace: "shop"}},
				To: []dependency.GrantTo{{Kind: "Secret"}, {Kind: "ConfigMap", Name: "c"}},
			},
		},
		"without a spec":          {`{` + meta + `}`, dependency.Grant{Namespace: "bank"}},
		"lists that are none":     {`{` + meta + `, spec: {from: all, to: {kind: Secret}}}`, dependency.Grant{Namespace: "bank"}},
		"entries that are none":   {`{` + meta + `, spec: {from: [Deployment, {kind: Pod, namespace: shop}], to: [7]}}`, dependency.Grant{Namespace: "bank", From: []dependency.GrantFrom{{Kind: "Pod", Namespace: "shop"}}}},
		"words that are none":     {`{` + meta + `, spec: {to: [{kind: 7, name: x}]}}`, dependency.Grant{Namespace: "bank", To: []dependency.GrantTo{{Name: "x"}}}},
		"a spec of another shape": {`{` + meta + `, spec: 7}`, dependency.Grant{Namespace: "bank"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, dependency.GrantOf(object(t, tc.object))); diff != "" {
				t.Errorf("grant (-want +got):\n%s", diff)
			}
		})
	}
	want := []schema.GroupVersionKind{
		{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "ReferenceGrant"},
		{Group: "gateway.networking.k8s.io", Version: "v1beta1", Kind: "ReferenceGrant"},
	}
	if diff := cmp.Diff(want, dependency.GrantKinds()); diff != "" {
		t.Errorf("kinds of grants (-want +got):\n%s", diff)
	}
}

// TestRefused: who is refused is told what, why, and what helps, but not endlessly.
func TestRefused(t *testing.T) {
	labelled := byLabel("app", "web")
	labelled.Namespace = "bank"
	line := func(name string) string {
		return "Secret bank/" + name + " does not go along: it is in another namespace than the Deployment. " +
			"Either a ReferenceGrant in bank allows from Deployment of shop to Secret " + name + ", or a policy of its own carries it"
	}
	many := make([]kinds.Dependency, 5)
	for i := range many {
		many[i] = secret("bank", fmt.Sprintf("s%d", i))
	}
	cases := map[string]struct {
		refused []kinds.Dependency
		want    string
	}{
		"nothing":                {nil, ""},
		"of another namespace":   {many[:1], line("s0")},
		"as many as are named":   {many[:3], line("s0") + "; " + line("s1") + "; " + line("s2")},
		"more than are named":    {many, line("s0") + "; " + line("s1") + "; " + line("s2") + "; and 2 others"},
		"of no namespace at all": {[]kinds.Dependency{storageClass("fast")}, "StorageClass fast does not go along: it belongs to no namespace, and no ClusterPropagationPolicy carries the Deployment. A ClusterPropagationPolicy can carry either of them"},
		"found by labels": {[]kinds.Dependency{labelled}, "ConfigMap bank/with labels app=web does not go along: it is in another namespace than the Deployment. " +
			"Either a ReferenceGrant in bank allows from Deployment of shop to ConfigMap with labels app=web, or a policy of its own carries it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got string
			if err := dependency.Refused(webTemplate(), tc.refused); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
