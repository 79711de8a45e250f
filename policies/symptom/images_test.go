package symptom

import "testing"

// TestMessagesAboutImages: container runtimes begin with what everybody knows, and say in the end what is wrong.
func TestMessagesAboutImages(t *testing.T) {
	for name, tc := range map[string]struct{ message, want string }{
		"containerd, of one that is not there": {
			`rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/nope:1": failed to resolve reference "docker.io/library/nope:1": docker.io/library/nope:1: not found`,
			`docker.io/library/nope:1: not found`,
		},
		"the kubelet, before it tries again": {
			`Back-off pulling image "nope:1": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/nope:1": failed to resolve reference "docker.io/library/nope:1": docker.io/library/nope:1: not found`,
			`docker.io/library/nope:1: not found`,
		},
		"an older kubelet, which says no more": {`Back-off pulling image "nope:1"`, `Back-off pulling image "nope:1"`},
		"containerd, of one that is private": {
			`rpc error: code = Unknown desc = failed to pull and unpack image "docker.io/acme/app:1": failed to resolve reference "docker.io/acme/app:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`,
			`docker.io/acme/app:1: pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`,
		},
		"containerd, of a registry that is not there": {
			`rpc error: code = Unavailable desc = failed to pull and unpack image "registry.local/app:1": failed to resolve reference "registry.local/app:1": failed to do request: Head "https://user:pass@registry.local/v2/app/manifests/1": dial tcp: lookup registry.local on 10.0.0.10:53: no such host`,
			`registry.local/app:1: dial tcp: lookup registry.local on 10.0.0.10:53: no such host`,
		},
		"CRI-O": {
			`rpc error: code = Unknown desc = reading manifest 1 in docker.io/library/nope: requested access to the resource is denied`,
			`reading manifest 1 in docker.io/library/nope: requested access to the resource is denied`,
		},
		"a name that is none": {`Failed to apply default image tag "Nope:1": couldn't parse image reference "Nope:1": invalid reference format: repository name must be lowercase`,
			`Nope:1: invalid reference format: repository name must be lowercase`},
		"another one's words": {"no such image: a:1", "no such image: a:1"},
		"nothing":             {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ofImage(tc.message); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
