package admission

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definitions "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// define returns a lister with one definition, of Fish, whose plural cannot be guessed.
func define(t *testing.T, established apiextensionsv1.ConditionStatus, reason string) definitions.CustomResourceDefinitionLister {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "fish.sea.example"}}
	crd.Spec.Group, crd.Spec.Scope = "sea.example", apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "Fish", Plural: "fish"}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true}, {Name: "v2"}, {Name: "v3", Served: true}}
	if established != "" {
		crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: established, Reason: reason}}
	}
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := indexer.Add(crd); err != nil {
		t.Fatal(err)
	}
	return definitions.NewCustomResourceDefinitionLister(indexer)
}

// TestWhatIsDefined checks that a kind with a new definition is found although discovery does
// not list it yet.
func TestWhatIsDefined(t *testing.T) {
	unknown := noMapper{err: &meta.NoKindMatchError{}}
	for name, tc := range map[string]struct {
		mapper      noMapper
		established apiextensionsv1.ConditionStatus
		reason      string
		api         string
		kind        string // Fish if empty
		lacks       bool
		resource    string
	}{
		"its definition is established":               {mapper: unknown, established: "True", api: "sea.example/v1", resource: "fish.sea.example"},
		"another version that it serves":              {mapper: unknown, established: "True", api: "sea.example/v3", resource: "fish.sea.example"},
		"a version that it does not serve":            {mapper: unknown, established: "True", api: "sea.example/v2", lacks: true, resource: "fishs.sea.example"},
		"a version that it does not have":             {mapper: unknown, established: "True", api: "sea.example/v4", lacks: true, resource: "fishs.sea.example"},
		"nobody has judged its definition":            {mapper: unknown, api: "sea.example/v1", resource: "fish.sea.example"},
		"its names were just accepted":                {mapper: unknown, established: "False", reason: "Installing", api: "sea.example/v1", resource: "fish.sea.example"},
		"its definition is refused":                   {mapper: unknown, established: "False", api: "sea.example/v1", lacks: true, resource: "fishs.sea.example"},
		"another kind":                                {mapper: unknown, established: "True", api: "sea.example/v1", kind: "Boat", lacks: true, resource: "boats.sea.example"},
		"another group":                               {mapper: unknown, established: "True", api: "lake.example/v1", lacks: true, resource: "fishs.lake.example"},
		"the list of what is served is not to be had": {mapper: noMapper{err: errors.New("discovery is down")}, established: "True", api: "sea.example/v1", resource: "fishs.sea.example"},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := NewPlugin(Options{})
			plugin.SetRESTMapper(tc.mapper)
			plugin.SetDefinitions(define(t, tc.established, tc.reason))
			kind := tc.kind
			if kind == "" {
				kind = "Fish"
			}
			lacks := plugin.lacks(policyv1alpha1.ResourceSelector{APIVersion: tc.api, Kind: kind})
			resource := resourceOf(&plugin.apis, schema.FromAPIVersionAndKind(tc.api, kind)).String()
			if diff := cmp.Diff([]any{tc.lacks, tc.resource}, []any{lacks, resource}); diff != "" {
				t.Errorf("whether it is lacking, and its resource (-want +got):\n%s", diff)
			}
		})
	}
	any := byDefinition{RESTMapper: unknown, definitions: define(t, "True", "")}
	got, err := any.RESTMapping(schema.GroupKind{Group: "sea.example", Kind: "Fish"})
	want := &meta.RESTMapping{
		Resource:         schema.GroupVersionResource{Group: "sea.example", Version: "v1", Resource: "fish"},
		GroupVersionKind: schema.GroupVersionKind{Group: "sea.example", Version: "v1", Kind: "Fish"}, Scope: meta.RESTScopeNamespace,
	}
	if err != nil || got.Resource != want.Resource || got.GroupVersionKind != want.GroupVersionKind || got.Scope.Name() != want.Scope.Name() {
		t.Errorf("any version: %+v, %v", got, err)
	}
}
