package webhook_test

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // as the senders do
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/policies/webhook"
)

const token = "s3cret-of-the-hook"

func sum(by func() hash.Hash, body string) string {
	mac := hmac.New(by, []byte(token))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

func request(body string, headers ...string) webhook.Request {
	return webhook.Request{Body: []byte(body), Header: func(name string) string {
		for i := 0; i+1 < len(headers); i += 2 {
			if strings.EqualFold(headers[i], name) {
				return headers[i+1]
			}
		}
		return ""
	}}
}

func TestWhoKnowsTheTokenMaySend(t *testing.T) {
	const body = `{"ref":"refs/heads/main"}`
	for name, tc := range map[string]struct {
		kind    string
		headers []string
		denied  bool
	}{
		"generic: whoever knows the address":              {kind: "generic"},
		"dockerhub: whoever knows the address":            {kind: "dockerhub"},
		"generic-hmac: SHA-256":                           {kind: "generic-hmac", headers: []string{"X-Signature", "sha256=" + sum(sha256.New, body)}},
		"generic-hmac: SHA-512":                           {kind: "generic-hmac", headers: []string{"X-Signature", "sha512=" + sum(sha512.New, body)}},
		"generic-hmac: no signature":                      {kind: "generic-hmac", denied: true},
		"generic-hmac: another body's":                    {kind: "generic-hmac", headers: []string{"X-Signature", "sha256=" + sum(sha256.New, body+" ")}, denied: true},
		"generic-hmac: a hash that is none of the type's": {kind: "generic-hmac", headers: []string{"X-Signature", "sha1=" + sum(sha1.New, body)}, denied: true},
		"generic-hmac: no hex digits":                     {kind: "generic-hmac", headers: []string{"X-Signature", "sha256=zz"}, denied: true},
		"generic-hmac: a part of the signature":           {kind: "generic-hmac", headers: []string{"X-Signature", "sha256=" + sum(sha256.New, body)[:10]}, denied: true},
		"generic-hmac: an empty signature":                {kind: "generic-hmac", headers: []string{"X-Signature", "sha256="}, denied: true},
		"github: SHA-256":                                 {kind: "github", headers: []string{"X-Hub-Signature-256", "sha256=" + sum(sha256.New, body)}},
		"github: an old server":                           {kind: "github", headers: []string{"X-Hub-Signature", "sha1=" + sum(sha1.New, body)}},
		"github: wrong, and right in the older header":    {kind: "github", headers: []string{"X-Hub-Signature-256", "sha256=00", "X-Hub-Signature", "sha1=" + sum(sha1.New, body)}, denied: true},
		"github: none":                                    {kind: "github", denied: true},
		"gitlab: the token":                               {kind: "gitlab", headers: []string{"X-Gitlab-Token", token}},
		"gitlab: another token":                           {kind: "gitlab", headers: []string{"X-Gitlab-Token", token + "x"}, denied: true},
		"gitlab: none":                                    {kind: "gitlab", denied: true},
		"bitbucket: SHA-256":                              {kind: "bitbucket", headers: []string{"X-Hub-Signature", "sha256=" + sum(sha256.New, body)}},
		"bitbucket: none":                                 {kind: "bitbucket", denied: true},
		"harbor: the token":                               {kind: "harbor", headers: []string{"Authorization", token}},
		"harbor: another token":                           {kind: "harbor", headers: []string{"Authorization", "x"}, denied: true},
		"nexus: SHA-1":                                    {kind: "nexus", headers: []string{"X-Nexus-Webhook-Signature", sum(sha1.New, body)}},
		"nexus: none":                                     {kind: "nexus", denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			err := webhook.Verify(tc.kind, request(body, tc.headers...), token)
			if got := errors.Is(err, webhook.ErrDenied); got != tc.denied || err != nil != tc.denied {
				t.Errorf("got %v, want denied %t", err, tc.denied)
			}
			if err != nil && strings.Contains(err.Error(), token) {
				t.Errorf("the token stands in %q", err)
			}
			if tc.kind == "generic" || tc.kind == "dockerhub" {
				return
			}
			if err := webhook.Verify(tc.kind, request(body, tc.headers...), ""); !errors.Is(err, webhook.ErrDenied) {
				t.Errorf("with an empty token: got %v", err)
			}
		})
	}
}

func TestWhatARequestSays(t *testing.T) {
	pubsub := func(data string) string {
		return fmt.Sprintf(`{"message":{"data":%q}}`, base64.StdEncoding.EncodeToString([]byte(data)))
	}
	for name, tc := range map[string]struct {
		kind, body string
		headers    []string
		want       webhook.Event
		malformed  bool
		says       string
	}{
		"a push to GitHub":                 {kind: "github", headers: []string{"X-GitHub-Event", "push"}, body: `{"ref":"refs/heads/main","repository":{"full_name":"shop/app"}}`, want: webhook.Event{Type: "push", Repository: "shop/app", Refs: []string{"refs/heads/main"}}},
		"GitHub sends it as a form":        {kind: "github", headers: []string{"X-GitHub-Event", "push", "Content-Type", "application/x-www-form-urlencoded"}, body: "payload=%7B%22ref%22%3A%22refs%2Ftags%2Fv1%22%7D", want: webhook.Event{Type: "push", Refs: []string{"refs/tags/v1"}}},
		"GitHub greets":                    {kind: "github", headers: []string{"X-GitHub-Event", "ping"}, body: `{"zen":"x"}`, want: webhook.Event{Type: "ping"}},
		"a branch is made on GitHub":       {kind: "github", headers: []string{"X-GitHub-Event", "create"}, body: `{"ref":"main"}`, want: webhook.Event{Type: "create"}},
		"GitHub says nothing of its event": {kind: "github", body: `{}`, malformed: true},
		"GitHub sends a form without it":   {kind: "github", headers: []string{"X-GitHub-Event", "push", "Content-Type", "application/x-www-form-urlencoded"}, body: `{"ref":"x"}`, malformed: true, says: "the request is none of the Receiver's type: its content type says form, and it has no field payload: send application/json"},
		"GitHub sends no JSON":             {kind: "github", headers: []string{"X-GitHub-Event", "push"}, body: `{`, malformed: true},
		"a push to GitLab":                 {kind: "gitlab", headers: []string{"X-Gitlab-Event", "Push Hook"}, body: `{"ref":"refs/heads/main","project":{"path_with_namespace":"shop/team/app"}}`, want: webhook.Event{Type: "Push Hook", Repository: "shop/team/app", Refs: []string{"refs/heads/main"}}},
		"a push to Bitbucket":              {kind: "bitbucket", headers: []string{"X-Event-Key", "repo:refs_changed"}, body: `{"repository":{"slug":"app","project":{"key":"SHOP"}},"changes":[{"ref":{"id":"refs/heads/a"}},{"ref":{"id":"refs/heads/b"}}]}`, want: webhook.Event{Type: "repo:refs_changed", Repository: "SHOP/app", Refs: []string{"refs/heads/a", "refs/heads/b"}}},
		"Bitbucket leaves one ref out":     {kind: "bitbucket", headers: []string{"X-Event-Key", "repo:refs_changed"}, body: `{"repository":{"slug":"app","project":{"key":"SHOP"}},"changes":[{"ref":{"id":"refs/heads/a"}},{}]}`, want: webhook.Event{Type: "repo:refs_changed", Repository: "SHOP/app"}},
		"an image on Docker Hub":           {kind: "dockerhub", body: `{"push_data":{"tag":"v1"},"repository":{"repo_url":"https://example.com/app"}}`},
		"Docker Hub leaves the tag out":    {kind: "dockerhub", body: `{"repository":{"repo_url":"https://example.com/app"}}`, malformed: true},
		"an image on Quay":                 {kind: "quay", body: `{"docker_url":"example.com/app"}`},
		"Quay says nothing":                {kind: "quay", body: `{}`, malformed: true},
		"an image on Harbor":               {kind: "harbor", body: `{"type":"PUSH_ARTIFACT"}`, want: webhook.Event{Type: "PUSH_ARTIFACT"}},
		"an image on Nexus":                {kind: "nexus", headers: []string{"X-Nexus-Webhook-Id", "rm:repository:component"}, body: `{"repositoryName":"apps"}`, want: webhook.Event{Type: "rm:repository:component"}},
		"an image on Azure":                {kind: "acr", body: `{"action":"push","target":{"repository":"app"}}`, want: webhook.Event{Type: "push"}},
		"Azure names no repository":        {kind: "acr", body: `{"action":"push"}`, malformed: true},
		"an image on Google":               {kind: "gcr", body: pubsub(`{"action":"INSERT","tag":"example.com/app:v1"}`), want: webhook.Event{Type: "INSERT"}},
		"Google's message is no base64":    {kind: "gcr", body: `{"message":{"data":"%"}}`, malformed: true},
		"an event of CDEvents":             {kind: "cdevents", headers: []string{"Ce-Type", "dev.cdevents.change.merged.0.2.0"}, body: "x", want: webhook.Event{Type: "dev.cdevents.change.merged.0.2.0"}},
		"anything at all":                  {kind: "generic", body: "\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := webhook.Read(tc.kind, request(tc.body, tc.headers...))
			if malformed := errors.Is(err, webhook.ErrMalformed); malformed != tc.malformed || err != nil != tc.malformed {
				t.Fatalf("got %v, want malformed %t", err, tc.malformed)
			}
			if tc.says != "" && err.Error() != tc.says {
				t.Errorf("it says %q, want %q", err, tc.says)
			}
			got.Payload = nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhichRepositoriesAPushConcerns(t *testing.T) {
	push := func(ref string) webhook.Event {
		return webhook.Event{Type: "push", Repository: "shop/app", Refs: []string{ref}}
	}
	for name, tc := range map[string]struct {
		url   string
		ref   *sourcev1.GitRepositoryRef
		event webhook.Event
		want  bool
	}{
		"its branch":                        {ref: &sourcev1.GitRepositoryRef{Branch: "main"}, event: push("refs/heads/main"), want: true},
		"another branch":                    {ref: &sourcev1.GitRepositoryRef{Branch: "main"}, event: push("refs/heads/other")},
		"another branch of another one":     {url: "https://example.com/shop/lib.git", ref: &sourcev1.GitRepositoryRef{Branch: "main"}, event: push("refs/heads/other"), want: true},
		"a tag, where a branch is followed": {ref: &sourcev1.GitRepositoryRef{Branch: "main"}, event: push("refs/tags/v1")},
		"any tag, where a range is":         {ref: &sourcev1.GitRepositoryRef{SemVer: "1.x"}, event: push("refs/tags/v1"), want: true},
		"a branch, where a range is":        {ref: &sourcev1.GitRepositoryRef{SemVer: "1.x", Branch: "main"}, event: push("refs/heads/main")},
		"its tag":                           {ref: &sourcev1.GitRepositoryRef{Tag: "v1"}, event: push("refs/tags/v1"), want: true},
		"another tag":                       {ref: &sourcev1.GitRepositoryRef{Tag: "v1"}, event: push("refs/tags/v2")},
		"the default branch":                {event: push("refs/heads/master"), want: true},
		"not the default branch":            {event: push("refs/heads/main")},
		"the name that it follows":          {ref: &sourcev1.GitRepositoryRef{Name: "refs/heads/main"}, event: push("refs/heads/main"), want: true},
		"a branch, where a name is":         {ref: &sourcev1.GitRepositoryRef{Name: "refs/heads/main"}, event: push("refs/heads/other")},
		"a pull request's head":             {ref: &sourcev1.GitRepositoryRef{Name: "refs/pull/1/head"}, event: push("refs/heads/fix"), want: true},
		"a commit":                          {ref: &sourcev1.GitRepositoryRef{Commit: "abc"}, event: push("refs/heads/main"), want: true},
		"no push":                           {ref: &sourcev1.GitRepositoryRef{Branch: "main"}, event: webhook.Event{Type: "ping"}, want: true},
		"over ssh":                          {url: "ssh://git@example.com/shop/app.git", ref: &sourcev1.GitRepositoryRef{Branch: "main"}, event: push("refs/heads/other")},
	} {
		t.Run(name, func(t *testing.T) {
			r := &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{URL: tc.url, Reference: tc.ref}}
			if r.Spec.URL == "" {
				r.Spec.URL = "https://example.com/shop/app"
			}
			if got := tc.event.Concerns(r); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestEventsThatNobodyWants(t *testing.T) {
	for name, tc := range map[string]struct {
		event  string
		wanted []string
		want   bool
	}{
		"all are wanted":                  {"push", nil, true},
		"it is wanted":                    {"Push Hook", []string{"push hook"}, true},
		"others are wanted":               {"ping", []string{"push"}, false},
		"it has no name":                  {"", []string{"push"}, true},
		"its name is that of an attacker": {"x\n\x1b[31m" + strings.Repeat("y", 500), []string{"push"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			why, got := webhook.Event{Type: tc.event}.Wanted(tc.wanted)
			if got != tc.want || (why == "") != tc.want || len(why) > 200 || strings.ContainsAny(why, "\n\x1b") {
				t.Errorf("got %t, %q", got, why)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	for _, kind := range []string{"github", "gitlab", "bitbucket", "gcr", "acr", "dockerhub"} {
		f.Add(kind, "push", []byte(`{"ref":"refs/heads/main","repository":{"slug":"a","project":{"key":"b"}},"changes":[{"ref":{"id":"refs/heads/a"}}],"message":{"data":"e30="}}`))
	}
	f.Fuzz(func(t *testing.T, kind, header string, body []byte) {
		r := webhook.Request{Header: func(string) string { return header }, Body: body}
		_ = webhook.Verify(kind, r, token)
		e, err := webhook.Read(kind, r)
		if err != nil && !errors.Is(err, webhook.ErrMalformed) {
			t.Errorf("an error of another class: %v", err)
		}
		for _, ref := range e.Refs {
			if !strings.HasPrefix(ref, "refs/") {
				t.Errorf("%q is no ref", ref)
			}
		}
	})
}
