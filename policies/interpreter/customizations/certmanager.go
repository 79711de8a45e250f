package customizations

import (
	"cmp"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// certManager is cert-manager. Its kinds say condition by condition which spec
// they are about.
func certManager() kinds.Table {
	const v1 = "cert-manager.io/v1"
	issuer := kinds.Rules{
		Reflect:      rules.ReflectTracked("conditions"),
		Health:       rules.Ready("Ready"),
		Aggregate:    rules.Aggregate(rules.EveryCondition()),
		Dependencies: issuerNeeds(),
	}
	clusterIssuer := issuer
	// Secrets of issuers of the cluster lie where cert-manager runs.
	clusterIssuer.Dependencies = words.Within(words.Always("cert-manager"), issuerNeeds())
	return kinds.Table{
		words.Kind(v1, "Issuer"):        issuer,
		words.Kind(v1, "ClusterIssuer"): clusterIssuer,
		words.Kind(v1, "Certificate"): {
			Reflect: rules.ReflectTracked("conditions", "notBefore", "notAfter", "renewalTime", "revision", "failedIssuanceAttempts"),
			Health:  rules.Ready("Ready"),
			// What runs out first is what somebody has to know.
			Aggregate: rules.Aggregate(rules.EveryCondition("Issuing"), rules.Latest("notBefore"),
				rules.Earliest("notAfter", "renewalTime"), rules.Alike("revision"),
				issuance),
			Dependencies: words.Needs(issuerOf, words.Secrets("spec.keystores.*.passwordSecretRef.name")),
		},
		words.Kind(v1, "CertificateRequest"): {
			// The certificate itself stays where it was issued.
			Reflect:      rules.ReflectTracked("conditions", "failureTime"),
			Health:       words.All(rules.Ready("Ready"), words.NotTrue("Denied", "InvalidRequest")),
			Aggregate:    rules.Aggregate(rules.EveryCondition("Denied", "InvalidRequest"), rules.Earliest("failureTime")),
			Dependencies: issuerOf,
		},
	}
}

// issuance counts failed attempts, which the schema has at least one of if any.
func issuance(status map[string]any, r rules.Reports) {
	delete(status, "failedIssuanceAttempts")
	if sum := rules.SumOf(r.Parts, "failedIssuanceAttempts"); sum > 0 {
		status["failedIssuanceAttempts"] = sum
	}
}

// issuerOf needs the issuer that is named, if it is one of cert-manager's own.
func issuerOf(obj kinds.Object) ([]kinds.Dependency, error) {
	ref := rules.Object(obj.Object, "spec", "issuerRef")
	if group := rules.Text(ref, "group"); group != "" && group != "cert-manager.io" {
		return nil, nil
	}
	kind := cmp.Or(rules.Text(ref, "kind"), "Issuer")
	found := rules.Needs{Namespace: words.Scope(kind, obj.GetNamespace())}
	found.AddOf("cert-manager.io/v1", kind, rules.Text(ref, "name"))
	return found.Sorted(), nil
}

// issuerNeeds is what issuers read. The key of an ACME account is made where it
// is missing, unless that is forbidden.
func issuerNeeds() words.Need {
	account := func(obj kinds.Object) ([]kinds.Dependency, error) {
		if !rules.Bool(obj.Object, words.At("spec.acme.disableAccountKeyGeneration")...) {
			return nil, nil
		}
		return words.Secrets("spec.acme.privateKeySecretRef.name")(obj)
	}
	return words.Needs(account,
		words.Secrets("spec.ca.secretName", "spec.acme.externalAccountBinding.keySecretRef.name", "spec.acme.solvers.*.dns01.*.*SecretRef.name",
			"spec.vault.auth.tokenSecretRef.name", "spec.vault.auth.*.secretRef.name", "spec.vault.auth.clientCertificate.secretName", "spec.vault.*SecretRef.name",
			"spec.venafi.tpp.credentialsRef.name", "spec.venafi.*.*SecretRef.name"),
		words.ServiceAccounts("spec.vault.auth.kubernetes.serviceAccountRef.name",
			"spec.acme.solvers.*.dns01.route53.auth.kubernetes.serviceAccountRef.name"),
	)
}
