package remark_test

import (
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// TestWhatMendsCredentials: the Secret that the message is about is named, and where there is none, where to name one.
func TestWhatMendsCredentials(t *testing.T) {
	ref := func(name string) *meta.LocalObjectReference { return &meta.LocalObjectReference{Name: name} }
	named := metav1.ObjectMeta{Namespace: "shop", Name: "app"}
	public := &sourcev1.GitRepository{ObjectMeta: named}
	git := public.DeepCopy()
	git.Spec.SecretRef, git.Spec.ProxySecretRef = ref("login"), ref("proxy")
	bare := &sourcev1.OCIRepository{ObjectMeta: named}
	oci := bare.DeepCopy()
	oci.Spec.SecretRef, oci.Spec.CertSecretRef, oci.Spec.ProxySecretRef, oci.Spec.ServiceAccountName = ref("login"), ref("certs"), ref("proxy"), "puller"
	account := bare.DeepCopy()
	account.Spec.ServiceAccountName = "puller"
	bucket := &sourcev1.Bucket{ObjectMeta: named, Spec: sourcev1.BucketSpec{SecretRef: ref("keys"), STS: &sourcev1.BucketSTSSpec{SecretRef: ref("ldap")}}}
	const again, pull = ", then: flotilla reconcile source git app -n shop", ", then: flotilla reconcile source oci app -n shop"
	for name, tc := range map[string]struct {
		of            origins.Object
		message, want string
	}{
		"it is refused":                 {git, "access denied (HTTP 401): check the credentials", "correct the Secret login -n shop, which spec.secretRef names" + again},
		"its Secret is missing":         {git, "the Secret shop/login of spec.secretRef is not there: create it", "create the Secret login -n shop, which spec.secretRef names"},
		"its Secret has nothing of use": {git, "Secret shop/login: invalid credentials", "correct the Secret login -n shop, which spec.secretRef names" + again},
		"that of the proxy is missing":  {git, "the Secret shop/proxy of spec.proxySecretRef is not there: create it", "create the Secret proxy -n shop, which spec.proxySecretRef names"},
		"that of the proxy is wrong":    {git, "Secret shop/proxy of spec.proxySecretRef: address is missing", "correct the Secret proxy -n shop, which spec.proxySecretRef names" + again},
		"the proxy refuses it":          {git, "dial: the proxy of the Secret: it wants a username and password, or others (HTTP 407)", "correct the Secret proxy -n shop, which spec.proxySecretRef names" + again},
		"the fleet's proxy refuses it":  {public, "dial: the proxy of the environment (HTTPS_PROXY, HTTP_PROXY): it wants a username and password", "have an administrator correct HTTPS_PROXY or HTTP_PROXY of the control plane"},
		"none is named":                 {public, "access denied (HTTP 401): the repository wants credentials", "name a Secret in spec.secretRef: flotilla edit gitrepository app -n shop"},
		"none is named, of a registry":  {bare, "access denied (HTTP 401): the registry wants a login", "name a Secret in spec.secretRef: flotilla edit ocirepository app -n shop"},
		"its certificates are missing":  {oci, "the Secret shop/certs of spec.certSecretRef is not there: create it", "create the Secret certs -n shop, which spec.certSecretRef names"},
		"its certificates are wrong":    {oci, "Secret shop/certs of spec.certSecretRef: ca.crt is none", "correct the Secret certs -n shop, which spec.certSecretRef names" + pull},
		"its account is missing":        {oci, "the ServiceAccount shop/puller of spec.serviceAccountName is not there: create it", "create the ServiceAccount puller -n shop, which spec.serviceAccountName names"},
		"a Secret of it is missing":     {oci, "the Secret shop/pull of ServiceAccount puller is not there: create it", "create the Secret pull -n shop, which ServiceAccount puller names"},
		"a Secret of it is wrong":       {oci, "Secret shop/pull of ServiceAccount puller: no login", "correct the Secret pull -n shop, which ServiceAccount puller names" + pull},
		"the Secrets of it are refused": {account, "access denied (HTTP 401): check the login", "correct the Secrets that ServiceAccount puller -n shop names in imagePullSecrets" + pull},
		"its keys are refused":          {bucket, "access denied (HTTP 403): correct secretkey", "correct the Secret keys -n shop, which spec.secretRef names, then: flotilla reconcile source bucket app -n shop"},
		"its login is missing":          {bucket, "the Secret shop/ldap of spec.sts.secretRef is not there: create it", "create the Secret ldap -n shop, which spec.sts.secretRef names"},
		"a submodule elsewhere": {git, "submodule lib (ssh://git@git.test/lib): unusable credentials: ssh takes a key; the credentials of spec.secretRef are for https://git.test alone: write a relative URL",
			"write a relative URL of the submodule into .gitmodules, or one with https:// that everybody may read, and commit"},
		"a submodule beside it":     {git, "submodule lib (https://git.test/lib): access denied (HTTP 401): check the credentials", "correct the Secret login -n shop, which spec.secretRef names" + again},
		"what others call a Secret": {oci, "the Secret shop/a;b of ServiceAccount puller is not there: create it", "correct the Secret login -n shop, which spec.secretRef names" + pull},
	} {
		if got := remark.SourceNext(tc.of, &metav1.Condition{Reason: sourcev1.AuthenticationFailedReason, Message: tc.message}); got != tc.want {
			t.Errorf("%s:\n%q, want\n%q", name, got, tc.want)
		}
	}
}
