package override_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// What is wrong with an override, or with what it changes, is reported without what may be text of a Secret.
func TestFaultsQuoteNoSecret(t *testing.T) {
	const (
		where  = "; its path and value are not told, as text of a Secret is in it"
		hidden = "what is wrong is not quoted, as text of a Secret is in it"
	)
	for name, tc := range map[string]struct {
		of             string // what is marked
		as             string // how
		policy         string
		template, with string
		want           string
	}{
		"a path of plaintext": {
			of: "override", as: gitopsv1alpha1.HoldsInFields, with: "{plaintext: [{path: /spec/nix/canary, operator: replace, value: 1}]}",
			want: "override policy shop/op: overrideRules[0].plaintext[0]: nothing is there: narrow the rule to what has it, or add it first" + where,
		},
		"a path of a field": {
			of: "override", as: gitopsv1alpha1.HoldsInFields, with: "{fieldOverrider: [{fieldPath: /data/canary, json: [{subPath: /a, operator: replace, value: 1}]}]}",
			want: "override policy shop/op: overrideRules[0].fieldOverrider[0]: path does not exist" + where,
		},
		"a path that is none": {
			of: "override", as: gitopsv1alpha1.HoldsInFields, with: "{plaintext: [{path: canary, operator: replace, value: 1}]}",
			want: "override policy shop/op: overrideRules[0].plaintext[0]: path is not a JSON pointer" + where,
		},
		"a value that makes no image": {
			of: "override", as: gitopsv1alpha1.HoldsInFields, with: "{imageOverrider: [{component: Tag, operator: replace, value: 'canary !'}]}",
			want: "override policy shop/op: overrideRules[0].imageOverrider[0]: " + hidden,
		},
		"its name": {
			of: "override", as: gitopsv1alpha1.HoldsInName, policy: "canary", with: "{plaintext: [{path: /spec/nix/a, operator: replace, value: 1}]}",
			want: "override policy shop/***: overrideRules[0].plaintext[0]: nothing is there: narrow the rule to what has it, or add it first" + where,
		},
		"an image of a template": {
			of: "template", as: gitopsv1alpha1.HoldsInFields, template: "canary !", with: "{imageOverrider: [{component: Tag, operator: replace, value: '1'}]}",
			want: "override policy shop/op: overrideRules[0].imageOverrider[0] at /spec/template/spec/containers/0/image: " + hidden,
		},
		"an override of a template that is marked": {
			of: "template", as: gitopsv1alpha1.HoldsInFields, with: "{plaintext: [{path: /spec/nix/a, operator: replace, value: 1}]}",
			want: "override policy shop/op: overrideRules[0].plaintext[0] at /spec/nix/a: nothing is there: narrow the rule to what has it, or add it first",
		},
		"what is not marked": {
			with: "{fieldOverrider: [{fieldPath: /data/public, json: [{subPath: /a, operator: replace, value: 1}]}]}",
			want: `override policy shop/op: overrideRules[0].fieldOverrider[0] at /data/public: path does not exist: there is no "data": narrow the rule to what has it`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj, policy := deployment(), policyOf(overriders(tc.with))
			if tc.policy != "" {
				policy.Name = tc.policy
			}
			switch annotation := map[string]string{gitopsv1alpha1.HoldsSecretsAnnotation: tc.as}; tc.of {
			case "override":
				policy.Annotations = annotation
			case "template":
				obj.SetAnnotations(annotation)
			}
			if tc.template != "" {
				lookup(obj.Object, "/spec/template/spec/containers/0").(map[string]any)["image"] = tc.template
			}
			_, err := apply(obj, east(), []policyv1alpha1.Override{policy})
			if diff := cmp.Diff(tc.want, message(err)); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if strings.Contains(message(err), "canary") {
				t.Error("the value is told")
			}
		})
	}
}
