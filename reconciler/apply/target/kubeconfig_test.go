package target_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/rest"

	"github.com/flotilla-io/flotilla/reconciler/apply/target"
)

// kubeconfig returns one with the given fields of its cluster and user.
func kubeconfig(cluster, user string) string {
	return `apiVersion: v1
kind: Config
current-context: prod
contexts: [{name: prod, context: {cluster: prod, user: deployer}}, {name: other, context: {cluster: other, user: other}}]
clusters: [{name: prod, cluster: {` + cluster + `}}, {name: other, cluster: {server: "http://other", insecure-skip-tls-verify: true}}]
users: [{name: deployer, user: {` + user + `}}, {name: other, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: other, interactiveMode: Never}}}]
`
}

// TestWhatAKubeconfigMayHold: of the context that is used only what stands in the file itself counts, and the rest is refused by its name.
func TestWhatAKubeconfigMayHold(t *testing.T) {
	const server, token = `server: "https://prod.example.com:6443"`, "token: secret"
	const inline = "put a token into token, or a certificate into client-certificate-data and client-key-data"
	for name, tc := range map[string]struct {
		raw  string
		want *rest.Config
		err  string
	}{
		"a token": {raw: kubeconfig(server, token), want: &rest.Config{Host: "https://prod.example.com:6443", BearerToken: "secret"}},
		"certificates, and another name": {
			raw:  kubeconfig(server+", certificate-authority-data: Q0E=, tls-server-name: prod", "client-certificate-data: Q0VSVA==, client-key-data: S0VZ"),
			want: &rest.Config{Host: "https://prod.example.com:6443", TLSClientConfig: rest.TLSClientConfig{ServerName: "prod", CAData: []byte("CA"), CertData: []byte("CERT"), KeyData: []byte("KEY")}},
		},
		"a password, and somebody to act as": {
			raw:  kubeconfig(server, "username: a, password: b, as: jane, as-groups: [team]"),
			want: &rest.Config{Host: "https://prod.example.com:6443", Username: "a", Password: "b", Impersonate: rest.ImpersonationConfig{UserName: "jane", Groups: []string{"team"}}},
		},
		"a program": {
			raw: kubeconfig(server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never}"),
			err: "user.exec is not allowed, as no program is run for a kubeconfig: " + inline,
		},
		"a program of a provider": {
			raw: kubeconfig(server, "auth-provider: {name: gcp}"), err: "user.auth-provider is not allowed, as no program is run for a kubeconfig: " + inline,
		},
		"a certificate in a file": {
			raw: kubeconfig(server, "client-certificate: /etc/passwd"), err: "user.client-certificate is not allowed, as no file is read: put its content into client-certificate-data, as base64",
		},
		"a key in a file":   {raw: kubeconfig(server, "client-key: key.pem"), err: "user.client-key is not allowed, as no file is read: put its content into client-key-data, as base64"},
		"a token in a file": {raw: kubeconfig(server, "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"), err: "user.tokenFile is not allowed, as no file is read: put its content into token"},
		"an authority in a file": {
			raw: kubeconfig(server+", certificate-authority: ca.crt", token), err: "cluster.certificate-authority is not allowed, as no file is read: put its content into certificate-authority-data, as base64",
		},
		"TLS that is not verified": {
			raw: kubeconfig(server+", insecure-skip-tls-verify: true", token),
			err: "cluster.insecure-skip-tls-verify is not allowed, as anybody on the way could take the credentials: put the authority into certificate-authority-data, or set tls-server-name",
		},
		"a proxy": {
			raw: kubeconfig(server+`, proxy-url: "http://proxy:3128"`, token), err: "cluster.proxy-url is not allowed, as the way there is the control plane's: an administrator can name a proxy in its environment",
		},
		"no TLS": {
			raw: kubeconfig(`server: "http://prod.example.com"`, token), err: "cluster.server is no https:// address, so that anybody on the way could read the credentials: use https://",
		},
		"no address":                  {raw: kubeconfig("", token), err: "cluster.server is no address: write one such as https://cluster.example.com:6443"},
		"credentials in the address":  {raw: kubeconfig(`server: "https://a:b@prod.example.com"`, token), err: "cluster.server has more than host, port and path: leave the rest out, and put credentials into the user"},
		"no context":                  {raw: strings.Replace(kubeconfig(server, token), "current-context: prod", "", 1), err: "current-context is missing: name the context to use"},
		"a context that is not there": {raw: strings.Replace(kubeconfig(server, token), "current-context: prod", "current-context: x", 1), err: `current-context is "x", and there is no such context: correct one of them`},
		"a cluster that is not there": {raw: strings.Replace(kubeconfig(server, token), "cluster: prod, user", "cluster: x, user", 1), err: `the context "prod" names the cluster "x", and there is no such cluster: correct one of them`},
		"a user that is not there":    {raw: strings.Replace(kubeconfig(server, token), "user: deployer}", "user: x}", 1), err: `the context "prod" names the user "x", and there is no such user: correct one of them`},
		"something else":              {raw: "[1", err: "it is no kubeconfig: write one, as kubectl config view --raw --minify --flatten does"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := target.Parse([]byte(tc.raw))
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tc.err {
				t.Errorf("error = %q, want %q", text, tc.err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreUnexported(rest.Config{})); diff != "" {
				t.Errorf("connection (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzParse: whatever stands in a Secret, nothing is run or read for it, and TLS is verified.
func FuzzParse(f *testing.F) {
	f.Add([]byte(kubeconfig(`server: "https://prod.example.com"`, "token: a")))
	f.Add([]byte(kubeconfig(`server: "https://prod.example.com", insecure-skip-tls-verify: true`, "exec: {command: a}")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		config, err := target.Parse(raw)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("the error has more than a line: %q", err)
			}
			return
		}
		tls := config.TLSClientConfig
		if !strings.HasPrefix(config.Host, "https://") || strings.Contains(config.Host, " ") {
			t.Errorf("the server is %q", config.Host)
		}
		if tls.Insecure || tls.CAFile != "" || tls.CertFile != "" || tls.KeyFile != "" || config.BearerTokenFile != "" || config.ExecProvider != nil || config.AuthProvider != nil || config.Proxy != nil {
			t.Errorf("it reaches outside of itself: %v", config)
		}
	})
}
