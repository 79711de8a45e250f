package admission

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// grants are the resources that a user may interpret.
type grants []string

func (g grants) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == "broken" {
		return authorizer.DecisionNoOpinion, "", errors.New("no connection")
	}
	resource := schema.GroupResource{Group: a.GetAPIGroup(), Resource: a.GetResource()}.String()
	if a.GetVerb() == "interpret" && a.IsResourceRequest() && a.GetNamespace() == "" && slices.Contains(g, resource) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// served is a mapper that knows one kind.
func served() meta.RESTMapper {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{gv})
	mapper.AddSpecific(gv.WithKind("Mouse"), gv.WithResource("mice"), gv.WithResource("mouse"), meta.RESTScopeNamespace)
	return mapper
}

// TestMayInterpret checks that a user needs the verb interpret on the resources that an
// object concerns.
func TestMayInterpret(t *testing.T) {
	script := func(kind, text string) string {
		return "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: c}\n" +
			"spec: {target: {apiVersion: example.com/v1, kind: " + kind + "}, customizations: {retention: {luaScript: " + text + "}}}"
	}
	hook := func(groups, kinds string) string {
		return "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterWebhookConfiguration\nmetadata: {name: c}\n" +
			"webhooks: [{name: a.example.com, clientConfig: {url: 'https://a'}, interpreterContextVersions: [v1alpha1], " +
			"rules: [{operations: ['*'], apiGroups: [" + groups + "], apiVersions: ['*'], kinds: [" + kinds + "]}]}]"
	}
	cases := map[string]struct {
		obj, old string
		user     string
		grants   grants
		// refused names what the user lacks; empty for nothing.
		refused string
	}{
		"one who was granted it":             {obj: script("Mouse", "a"), grants: grants{"mice.example.com"}},
		"one who was not":                    {obj: script("Mouse", "a"), grants: grants{"mouses.example.com", "mice"}, refused: "mice.example.com"},
		"a kind that is not served yet":      {obj: script("Cat", "a"), grants: grants{"cats.example.com"}},
		"the same once more":                 {obj: script("Mouse", "a"), old: script("Mouse", "a")},
		"an edit":                            {obj: script("Mouse", "b"), old: script("Mouse", "a"), refused: "mice.example.com"},
		"taken from a kind":                  {obj: script("Cat", "a"), old: script("Mouse", "a"), grants: grants{"cats.example.com"}, refused: "mice.example.com"},
		"given to a kind":                    {obj: script("Cat", "a"), old: script("Mouse", "a"), grants: grants{"mice.example.com"}, refused: "cats.example.com"},
		"a server about some":                {obj: hook("example.com", "Mouse, Cat"), grants: grants{"mice.example.com", "cats.example.com"}},
		"a server about more":                {obj: hook("example.com", "Mouse, Cat, Dog"), grants: grants{"mice.example.com", "cats.example.com"}, refused: "dogs.example.com"},
		"a server about all of a group":      {obj: hook("example.com", "'*'"), grants: grants{"mice.example.com", "cats.example.com"}, refused: "*.example.com"},
		"a server about all":                 {obj: hook("'*'", "'*'"), grants: grants{"*.*"}},
		"a server about a kind of any group": {obj: hook("'*'", "Cat"), grants: grants{"cats"}, refused: "cats.*"},
		"a server about very many":           {obj: hook("example.com", strings.Repeat("Mouse,", 1000)+"Mouse"), grants: grants{"mice.example.com"}, refused: "*.*"},
		"nobody can tell":                    {obj: script("Mouse", "a"), user: "broken", refused: "no connection"},
		"what is of another kind": {
			obj: "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p}\nspec: {resourceSelectors: []}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := parse(t, tc.obj)
			var old *unstructured.Unstructured
			if tc.old != "" {
				old = parse(t, tc.old)
			}
			plugin := NewPlugin(Options{})
			plugin.SetRESTMapper(served())
			plugin.SetAuthorizer(tc.grants)
			resource := strings.ToLower(obj.GetKind()) + "s"
			if obj.GetKind() == "PropagationPolicy" {
				resource = "propagationpolicies"
			}
			gvk := obj.GroupVersionKind()
			a := admission.NewAttributesRecord(obj, nil, gvk, "", obj.GetName(), gvk.GroupVersion().WithResource(resource), "",
				admission.Create, nil, false, &user.DefaultInfo{Name: tc.user})
			k, _, _ := plugin.of(a)
			if k.Resource == "" {
				t.Fatalf("%s is not known", resource)
			}
			err := plugin.mayInterpret(t.Context(), a, k, obj, old)
			want := ""
			switch {
			case tc.user == "broken":
				want = "Internal error occurred: find out who may interpret mice.example.com: no connection"
			case tc.refused != "":
				want = resource + ".config.karmada.io \"c\" is forbidden: it decides what " + tc.refused +
					" mean in all clusters: that takes the verb \"interpret\" on them, granted by a ClusterRole"
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(want, got); diff != "" || tc.user == "" && err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
