package remark

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// reference is a Secret that a field of a source names.
type reference struct{ field, secret string }

// referencesOf returns the Secrets by which a source is reached, that of its credentials first if it has one, and the
// ServiceAccount that it names.
func referencesOf(of origins.Object) (all []reference, account string) {
	add := func(field string, ref *meta.LocalObjectReference) {
		if ref != nil {
			all = append(all, reference{field, ref.Name})
		}
	}
	switch r := of.(type) {
	case *sourcev1.GitRepository:
		add(bySecret, r.Spec.SecretRef)
		add(byProxy, r.Spec.ProxySecretRef)
	case *sourcev1.OCIRepository:
		add(bySecret, r.Spec.SecretRef)
		add("spec.certSecretRef", r.Spec.CertSecretRef)
		add(byProxy, r.Spec.ProxySecretRef)
		account = r.Spec.ServiceAccountName
	case *sourcev1.Bucket:
		add(bySecret, r.Spec.SecretRef)
		add("spec.certSecretRef", r.Spec.CertSecretRef)
		add(byProxy, r.Spec.ProxySecretRef)
		if sts := r.Spec.STS; sts != nil {
			add("spec.sts.secretRef", sts.SecretRef)
			add("spec.sts.certSecretRef", sts.CertSecretRef)
		}
	}
	return all, account
}

const bySecret, byProxy = "spec.secretRef", "spec.proxySecretRef"

// ofAccount matches what begins a message about a Secret that a ServiceAccount names.
var ofAccount = regexp.MustCompile(`^(?:the )?Secret [a-z0-9.-]+/([a-z0-9.-]+) of ServiceAccount ([a-z0-9.-]+)(:| is not there: )`)

// ofSubmodule matches a message about a submodule that no credentials of the source go to.
var ofSubmodule = regexp.MustCompile(`^submodule .*; the credentials of spec\.secretRef are for \S+ alone: `)

// credentialsNext returns what to do about the credentials of a source, by the message of its condition. Secrets are named
// by the spec, but for those of a ServiceAccount.
func credentialsNext(of origins.Object, message, again string) string {
	in := inNamespace(of.GetNamespace())
	create := func(secret, by string) string {
		return fmt.Sprintf("create the Secret %s, which %s names", secret+in, by)
	}
	correct := func(secret, by string) string {
		return fmt.Sprintf("correct the Secret %s, which %s names, then: %s", secret+in, by, again)
	}
	if ofSubmodule.MatchString(message) {
		return "write a relative URL of the submodule into .gitmodules, or one with https:// that everybody may read, and commit"
	}
	all, account := referencesOf(of)
	own := ""
	for _, ref := range all {
		name := "Secret " + of.GetNamespace() + "/" + ref.secret + " of " + ref.field
		switch {
		case strings.HasPrefix(message, "the "+name+" is not there"):
			return create(ref.secret, ref.field)
		case strings.HasPrefix(message, name+": "), ref.field == byProxy && strings.Contains(message, "the proxy of the Secret: "):
			return correct(ref.secret, ref.field)
		case ref.field == bySecret:
			own = correct(ref.secret, ref.field)
		}
	}
	about := ofAccount.FindStringSubmatch(message)
	switch {
	case about != nil && about[2] == account && about[3] == ":":
		return correct(about[1], "ServiceAccount "+account)
	case about != nil && about[2] == account:
		return create(about[1], "ServiceAccount "+account)
	case account != "" && strings.HasPrefix(message, "the ServiceAccount "):
		return fmt.Sprintf("create the ServiceAccount %s, which spec.serviceAccountName names", account+in)
	case strings.Contains(message, "the proxy of the environment "):
		return "have an administrator correct HTTPS_PROXY or HTTP_PROXY of the control plane"
	case own != "":
		return own
	case account != "":
		return fmt.Sprintf("correct the Secrets that ServiceAccount %s names in imagePullSecrets, then: %s", account+in, again)
	default:
		return fmt.Sprintf("name a Secret in spec.secretRef: flotilla edit %s %s", strings.ToLower(origins.Of(of).Kind), of.GetName()+in)
	}
}
