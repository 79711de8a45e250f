package members_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
)

func TestTargetOf(t *testing.T) {
	const canary = "CANARY-token"
	cases := map[string]struct {
		change  func(*clusterv1alpha1.Cluster, *corev1.Secret)
		refused string // part of the message; empty: accepted
	}{
		"a cluster with token and CA": {change: func(*clusterv1alpha1.Cluster, *corev1.Secret) {}},
		"a proxy with headers": {change: func(c *clusterv1alpha1.Cluster, _ *corev1.Secret) {
			c.Spec.ProxyURL, c.Spec.ProxyHeader = "socks5://proxy:1080", map[string]string{"X-A": "1, 2"}
		}},
		"no address":          {func(c *clusterv1alpha1.Cluster, _ *corev1.Secret) { c.Spec.APIEndpoint = "" }, "spec.apiEndpoint"},
		"an address in clear": {func(c *clusterv1alpha1.Cluster, _ *corev1.Secret) { c.Spec.APIEndpoint = "http://m:6443" }, "https://"},
		"an address that holds a password": {func(c *clusterv1alpha1.Cluster, _ *corev1.Secret) {
			c.Spec.APIEndpoint = "https://hub:" + canary + "@m:6443"
		}, "user name"},
		"no token":          {func(_ *clusterv1alpha1.Cluster, s *corev1.Secret) { delete(s.Data, "token") }, "has no token"},
		"a token of blanks": {func(_ *clusterv1alpha1.Cluster, s *corev1.Secret) { s.Data["token"] = []byte(" \n") }, "has no token"},
		"a proxy of another scheme": {func(c *clusterv1alpha1.Cluster, _ *corev1.Secret) {
			c.Spec.ProxyURL = "ftp://proxy"
		}, "http, https and socks5"},
		"a proxy without a host": {func(c *clusterv1alpha1.Cluster, _ *corev1.Secret) { c.Spec.ProxyURL = "proxy" }, "spec.proxyURL"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "eu-1"},
				Spec:       clusterv1alpha1.ClusterSpec{ID: "id", APIEndpoint: "https://m:6443"},
			}
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "eu-1"},
				Data:       map[string][]byte{"token": []byte(canary), "caBundle": []byte("pem"), "kubeconfig": []byte("exec: {command: sh}")},
			}
			tc.change(cluster, secret)
			target, err := members.TargetOf(cluster, secret)
			if tc.refused == "" {
				if err != nil || target.Config.BearerToken != canary || target.Config.ExecProvider != nil || target.Config.BearerTokenFile != "" {
					t.Errorf("TargetOf = %v, %v", target.Name, err)
				}
				return
			}
			if !errors.Is(err, members.ErrCredentials) || !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("error = %v, want one about %q", err, tc.refused)
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the error tells the token: %v", err)
			}
		})
	}
}
