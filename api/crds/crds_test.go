package crds

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

func byName(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range all {
		out[crd.Name] = crd
	}
	return out
}

// internal is the form in which an API server validates a definition.
func internal(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *apiextensions.CustomResourceDefinition {
	t.Helper()
	crd = crd.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	crd.Status.StoredVersions = []string{storedVersion(crd)}
	out := new(apiextensions.CustomResourceDefinition)
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, out, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

func storedVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	return crd.Spec.Versions[i].Name
}

func TestAnAPIServerAcceptsEveryDefinition(t *testing.T) {
	for name, crd := range byName(t) {
		if errs := validation.ValidateCustomResourceDefinition(t.Context(), internal(t, crd)); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs.ToAggregate())
		}
	}
}

// kubectl explain prints descriptions. Each field of ours has one, and none is
// a page.
func TestEveryFieldIsDescribed(t *testing.T) {
	for name, crd := range byName(t) {
		if strings.HasSuffix(crd.Spec.Group, ".fluxcd.io") {
			continue
		}
		for _, version := range crd.Spec.Versions {
			undescribed(name+" "+version.Name, version.Schema.OpenAPIV3Schema, func(path string) {
				t.Errorf("%s: no description, or one over 400 characters", path)
			})
		}
	}
}

func undescribed(path string, schema *apiextensionsv1.JSONSchemaProps, report func(path string)) {
	for name, field := range schema.Properties {
		fieldPath := path + "." + name
		if fieldPath != path+".metadata" && (field.Description == "" || len(field.Description) > 400) {
			report(fieldPath)
		}
		undescribed(fieldPath, &field, report)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		undescribed(path, schema.Items.Schema, report)
	}
}

// TestStatusIsASubresource: who may write an object does not write its status,
// which loops read back.
func TestStatusIsASubresource(t *testing.T) {
	for name, crd := range byName(t) {
		for _, version := range crd.Spec.Versions {
			_, has := version.Schema.OpenAPIV3Schema.Properties["status"]
			if apart := version.Subresources != nil && version.Subresources.Status != nil; has && !apart {
				t.Errorf("%s %s: the status is written with the object", name, version.Name)
			}
		}
	}
}

func TestKustomizationsLeaveDefinitionsAlone(t *testing.T) {
	for name, crd := range byName(t) {
		want := map[string]string{"kustomize.toolkit.fluxcd.io/substitute": "disabled", "kustomize.toolkit.fluxcd.io/prune": "disabled"}
		if diff := cmp.Diff(want, crd.Annotations); diff != "" {
			t.Errorf("%s: annotations (-want +got):\n%s", name, diff)
		}
	}
}

func TestFluxKindsThatAreServed(t *testing.T) {
	got := map[string]string{}
	for name, crd := range byName(t) {
		if strings.HasSuffix(crd.Spec.Group, ".fluxcd.io") {
			got[name] = storedVersion(crd)
			if crd.Labels["app.kubernetes.io/part-of"] != "flux" {
				t.Errorf("%s: not labelled as part of flux, by which its clients find it", name)
			}
		}
	}
	want := map[string]string{
		"alerts.notification.toolkit.fluxcd.io":      "v1beta3",
		"gitrepositories.source.toolkit.fluxcd.io":   "v1",
		"kustomizations.kustomize.toolkit.fluxcd.io": "v1",
		"ocirepositories.source.toolkit.fluxcd.io":   "v1",
		"buckets.source.toolkit.fluxcd.io":           "v1",
		"externalartifacts.source.toolkit.fluxcd.io": "v1",
		"providers.notification.toolkit.fluxcd.io":   "v1beta3",
		"receivers.notification.toolkit.fluxcd.io":   "v1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// objects are specs of kinds, and what an API server says about them. An empty
// answer means that it takes them.
var objects = map[string]struct{ kind, object, want string }{
	"a status of a Kustomization":     {commitStatuses, `{providerRef: {name: p}, kustomizationRef: {name: k}, repository: "https://git.test/a/b", context: c, commit: "0123456789012345678901234567890123456789", state: pending}`, ""},
	"a status of a source":            {commitStatuses, `{providerRef: {name: p}, sourceRef: {kind: GitRepository, name: s}, repository: "ssh://git@git.test/a/b", context: c, commit: "0123456789012345678901234567890123456789", state: error, targetURL: "http://x"}`, ""},
	"a status of nothing":             {commitStatuses, `{providerRef: {name: p}, repository: r, context: c, commit: "0123456789012345678901234567890123456789", state: pending}`, "exactly one of sourceRef and kustomizationRef"},
	"a status of two":                 {commitStatuses, `{providerRef: {name: p}, kustomizationRef: {name: k}, sourceRef: {kind: GitRepository, name: s}, repository: r, context: c, commit: "0123456789012345678901234567890123456789", state: pending}`, "exactly one of sourceRef and kustomizationRef"},
	"a repository with a token":       {commitStatuses, `{providerRef: {name: p}, kustomizationRef: {name: k}, repository: "https://token@git.test/a/b", context: c, commit: "0123456789012345678901234567890123456789", state: pending}`, "must not carry credentials"},
	"a repository with a password":    {commitStatuses, `{providerRef: {name: p}, kustomizationRef: {name: k}, repository: "ssh://git:secret@git.test/a/b", context: c, commit: "0123456789012345678901234567890123456789", state: pending}`, "must not carry credentials"},
	"a short commit":                  {commitStatuses, `{providerRef: {name: p}, kustomizationRef: {name: k}, repository: r, context: c, commit: "0123456", state: pending}`, "spec.commit"},
	"a state of no forge":             {commitStatuses, `{providerRef: {name: p}, kustomizationRef: {name: k}, repository: r, context: c, commit: "0123456789012345678901234567890123456789", state: ok}`, "spec.state"},
	"a long description":              {commitStatuses, `{providerRef: {name: p}, kustomizationRef: {name: k}, repository: r, context: c, commit: "0123456789012345678901234567890123456789", state: pending, description: "` + strings.Repeat("é", 1001) + `"}`, "spec.description"},
	"a review":                        {pullRequestReviews, `{sourceRef: {name: s}, providerRef: {name: p}, interval: 1m, rules: [{name: a, expression: "true"}]}`, ""},
	"a review of another source":      {pullRequestReviews, `{sourceRef: {kind: Bucket, name: s}, providerRef: {name: p}, interval: 1m}`, "spec.sourceRef.kind"},
	"a review at no interval":         {pullRequestReviews, `{sourceRef: {name: s}, providerRef: {name: p}, interval: often}`, "spec.interval"},
	"a review with a rule of no name": {pullRequestReviews, `{sourceRef: {name: s}, providerRef: {name: p}, interval: 1m, rules: [{name: "**", expression: "true"}]}`, "spec.rules[0].name"},
	"a description of 1,000 runes":    {commitStatuses, `{providerRef: {name: p}, kustomizationRef: {name: k}, repository: r, context: c, commit: "0123456789012345678901234567890123456789", state: pending, description: "` + strings.Repeat("é", 1000) + `"}`, ""},
	"a Provider of ours":              {providers, `{type: git-notes}`, ""},
	"a Provider of Flux":              {providers, `{type: gitea, address: "https://git.test/a/b"}`, ""},
	"a Provider of nobody":            {providers, `{type: carrier-pigeon}`, "spec.type"},
	"a policy without a selector":     {policies, `{resourceSelectors: []}`, "spec.resourceSelectors"},
	"a policy":                        {policies, `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {clusterAffinity: {clusterNames: [a]}}}`, ""},
	"a weight of zero":                {policies, `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {}, weight: 0}]}}}}`, "weight"},
	"an override of any type":         {overrides, `{overrideRules: [{overriders: {plaintext: [{path: /a, operator: add, value: 1}, {path: /b, operator: add, value: {c: [d]}}, {path: /e, operator: remove, value: null}]}}]}`, ""},
}

const (
	commitStatuses = "commitstatuses.gitops.flotilla.io"

	pullRequestReviews = "pullrequestreviews.gitops.flotilla.io"
	providers          = "providers.notification.toolkit.fluxcd.io"
	policies           = "propagationpolicies.policy.karmada.io"
	overrides          = "overridepolicies.policy.karmada.io"
)

func TestWhatAnAPIServerTakes(t *testing.T) {
	crds := byName(t)
	for name, c := range objects {
		t.Run(name, func(t *testing.T) {
			got := answer(t, crds[c.kind], c.object)
			if c.want == "" && len(got) == 0 {
				return
			}
			if c.want == "" || len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("got %q, want %q alone", got, c.want)
			}
		})
	}
}

// answer is what an API server has against an object with that spec.
func answer(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, spec string) []string {
	t.Helper()
	version := crd.Spec.Versions[len(crd.Spec.Versions)-1]
	props := new(apiextensions.JSONSchemaProps)
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, props, nil); err != nil {
		t.Fatal(err)
	}
	var value any
	if err := yaml.Unmarshal([]byte(spec), &value); err != nil {
		t.Fatal(err)
	}
	object := map[string]any{
		"apiVersion": crd.Spec.Group + "/" + version.Name, "kind": crd.Spec.Names.Kind,
		"metadata": map[string]any{"name": "x"}, "spec": value,
	}

	validator, _, err := schemavalidation.NewSchemaValidator(props)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, err := range schemavalidation.ValidateCustomResource(nil, object, validator) {
		out = append(out, err.Error())
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		t.Fatal(err)
	}
	if rules := cel.NewValidator(structural, true, celconfig.PerCallLimit); rules != nil {
		errs, _ := rules.Validate(t.Context(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
		for _, err := range errs {
			out = append(out, err.Error())
		}
	}
	return out
}

func TestNamesInCodeAndDefinitionsAgree(t *testing.T) {
	crds := byName(t)
	if got := crds["resourcebindings.work.karmada.io"].Spec.Names.Kind; got != workv1alpha2.ResourceKindResourceBinding {
		t.Errorf("kind %q", got)
	}
	names := crds[commitStatuses].Spec.Names
	want := apiextensionsv1.CustomResourceDefinitionNames{
		Plural: "commitstatuses", Singular: "commitstatus", Kind: "CommitStatus", ListKind: "CommitStatusList",
		ShortNames: []string{"cst"}, Categories: []string{"flotilla"},
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	types := crds[providers].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["type"].Enum
	if !slices.ContainsFunc(types, func(v apiextensionsv1.JSON) bool { return string(v.Raw) == `"`+gitopsv1alpha1.ProviderTypeGitNotes+`"` }) {
		t.Errorf("spec.type of a Provider allows %s", types)
	}
}

// TestOwn: what the control plane brings is found by its name, but for what clusters have, too.
func TestOwn(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		if got, want := Own(crd.Name), crd.Spec.Group != "multicluster.x-k8s.io"; got != want {
			t.Errorf("Own(%s) = %t", crd.Name, got)
		}
	}
	for _, name := range []string{"helmreleases.helm.toolkit.fluxcd.io", "kustomizations", "", "../crds.go"} {
		if Own(name) {
			t.Errorf("Own(%q)", name)
		}
	}
}
