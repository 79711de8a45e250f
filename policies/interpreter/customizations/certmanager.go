package customizations

import (
	"cmp"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// certManager returns the rules for the kinds of cert-manager, whose conditions
// each say which generation they are about.
func certManager() kinds.Table {
	const v1 = "cert-manager.io/v1"
	issuer := kinds.Rules{
		Reflect:      rules.ReflectTracked("conditions"),
		Health:       rules.Ready("Ready"),
		Aggregate:    rules.Aggregate(rules.EveryCondition()),
		Dependencies: issuerNeeds(),
	}
	clusterIssuer := issuer
	// A ClusterIssuer has no namespace; cert-manager reads its secrets from the
	// namespace that it runs in itself.
	clusterIssuer.Dependencies = words.Within(words.Always("cert-manager"), issuerNeeds())
	return kinds.Table{
		words.Kind(v1, "Issuer"):        issuer,
		words.Kind(v1, "ClusterIssuer"): clusterIssuer,
		words.Kind(v1, "Certificate"): {
			Reflect: rules.ReflectTracked("conditions", "notBefore", "notAfter", "renewalTime", "revision", "failedIssuanceAttempts"),
			Health:  rules.Ready("Ready"),
			// The certificate that expires first is the one that somebody has to
			// look at.
			Aggregate: rules.Aggregate(rules.EveryCondition("Issuing"), rules.Latest("notBefore"),
				rules.Earliest("notAfter", "renewalTime"), rules.Alike("revision"),
				issuance),
			Dependencies: words.Needs(issuerOf, words.Secrets("spec.keystores.*.passwordSecretRef.name")),
		},
		words.Kind(v1, "CertificateRequest"): {
			// status.certificate is left out: the certificate is of use in the
			// cluster only in which it was issued.
			Reflect:      rules.ReflectTracked("conditions", "failureTime"),
			Health:       words.All(rules.Ready("Ready"), words.NotTrue("Denied", "InvalidRequest")),
			Aggregate:    rules.Aggregate(rules.EveryCondition("Denied", "InvalidRequest"), rules.Earliest("failureTime")),
			Dependencies: issuerOf,
		},
	}
}

// issuance adds up the failed attempts. The schema asks for at least one, so that
// zero is left out.
func issuance(status map[string]any, r rules.Reports) {
	delete(status, "failedIssuanceAttempts")
	if sum := rules.SumOf(r.Parts, "failedIssuanceAttempts"); sum > 0 {
		status["failedIssuanceAttempts"] = sum
	}
}

// issuerOf finds the issuer that is referred to; external issuers, which are of
// another group, are not known here.
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

// issuerNeeds returns a rule that finds what an issuer reads. cert-manager makes
// the key of an ACME account where it is missing, so that it is needed only where
// that is forbidden.
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
