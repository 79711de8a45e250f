package forge

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// dialect describes the status API of one kind of forge.
type dialect struct {
	// place returns the API addresses of a repository by its server and the two or
	// more segments of its path; false if the address has another form.
	place func(host *url.URL, parts []string) (place, bool)
	// form describes the required form of an address, for messages.
	form string
	// auth returns the header that authenticates. Errors: ErrProvider.
	auth func(secret map[string][]byte) (key, value string, err error)
	// headers are sent with every request.
	headers map[string]string
	// body returns the JSON body of a status.
	body func(s Status) any
	// links reports whether a status can link to an address, which may be empty;
	// if it cannot, the status links to its commit. Nil means that every address
	// is accepted.
	links func(target string) bool
	// refused explains why the forge may refuse a status, for messages.
	refused string
	// accepts reports whether a refusal nevertheless means success. It may be nil.
	accepts func(s Status, code int, message string) bool
	// signIn are the status codes with which the forge sends its sign-in page when
	// it does not know the token.
	signIn []int
	// silent means that the forge answers an accepted status with no content.
	silent bool
}

// place holds the addresses of a repository on a forge.
type place struct {
	// before and after are the parts of the address that accepts statuses before
	// and after the commit's hash.
	before, after string
	// page is the address of a commit's page without the hash. It is set where
	// links is.
	page string
}

// often is the reason that most forges have for refusing a status.
const often = "a commit takes so many statuses of a context and no more, and the token may not set those of others"

// dialects maps Provider types to the status APIs.
var dialects = map[string]dialect{
	typeGitHub: {
		place: func(host *url.URL, parts []string) (place, bool) {
			if strings.EqualFold(host.Host, "github.com") {
				return ownedPlace("https://api.github.com", parts)
			}
			return ownedPlace(host.String()+"/api/v3", parts)
		},
		form: ownedForm, auth: tokenAs("Authorization", "Bearer "), body: plainBody, refused: often,
	},
	typeGitea: {
		place: func(host *url.URL, parts []string) (place, bool) { return ownedPlace(host.String()+"/api/v1", parts) },
		form:  ownedForm, auth: tokenAs("Authorization", "token "), body: plainBody, refused: often,
	},
	"gitlab": {
		place: func(host *url.URL, parts []string) (place, bool) {
			return place{before: host.String() + "/api/v4/projects/" + url.PathEscape(strings.Join(parts, "/")) + "/statuses/"}, true
		},
		form: ownedForm, auth: tokenAs("PRIVATE-TOKEN", ""), refused: often, accepts: sameState,
		body: func(s Status) any {
			return without(map[string]string{"state": gitlabState(s.State), "name": s.Context, "description": s.Description, "target_url": s.TargetURL})
		},
	},
	"bitbucket": {
		place: bitbucketPlace, form: "be https://bitbucket.org/<workspace>/<repository>; for Bitbucket Data Center use the type bitbucketserver",
		auth: bitbucketAuth, body: bitbucketBody, links: bitbucketLinks, refused: badLink,
	},
	"bitbucketserver": {
		place: dataCenterPlace, form: "be https://<host>/scm/<project>/<repository>.git or https://<host>/projects/<project>/repos/<repository>",
		auth: bitbucketAuth, body: dataCenterBody, links: func(target string) bool { return target != "" }, refused: badLink,
		// Without this header the server may refuse the request as cross-site
		// request forgery.
		headers: map[string]string{"X-Atlassian-Token": "no-check"}, silent: true,
	},
	"azuredevops": {
		place: azurePlace, form: "be https://dev.azure.com/<organization>/<project>/_git/<repository>, or https://<host>/<collection>/<project>/_git/<repository>",
		auth: azureAuth, body: azureBody, refused: often,
		// This header asks for no redirect to the sign-in page; some responses
		// still are that page.
		headers: map[string]string{"X-TFS-FedAuthRedirect": "Suppress"}, signIn: []int{http.StatusNonAuthoritativeInfo, http.StatusFound},
	},
}

const ownedForm = "name an owner and a repository"

// ownedPlace returns the API addresses of a repository at <owner>/<repository>.
func ownedPlace(api string, parts []string) (place, bool) {
	return place{before: api + "/repos/" + escape(parts) + "/statuses/"}, len(parts) == 2
}

func escape(parts []string) string {
	out := make([]string, len(parts))
	for n, p := range parts {
		out[n] = url.PathEscape(p)
	}
	return strings.Join(out, "/")
}

func tokenOf(secret map[string][]byte) (string, error) {
	token := strings.TrimSpace(string(secret["token"]))
	if token == "" {
		return "", fmt.Errorf("%w: the Secret has no key token", ErrProvider)
	}
	return token, nil
}

// tokenAs returns an auth function that sends the token in a header after a
// prefix.
func tokenAs(key, prefix string) func(map[string][]byte) (string, string, error) {
	return func(secret map[string][]byte) (string, string, error) {
		token, err := tokenOf(secret)
		return key, prefix + token, err
	}
}

func plainBody(s Status) any {
	return without(map[string]string{"state": string(s.State), "context": s.Context, "description": s.Description, "target_url": s.TargetURL})
}

// without removes empty fields from m and returns it.
func without(m map[string]string) map[string]string {
	for k, v := range m {
		if v == "" {
			delete(m, k)
		}
	}
	return m
}

func gitlabState(s State) string {
	if s == Failure {
		return "failed"
	}
	return string(s)
}

// sameState reports whether GitLab refused a status because the commit already
// has this state.
func sameState(s Status, code int, message string) bool {
	return code == http.StatusBadRequest && strings.Contains(message, "Cannot transition status") &&
		strings.Contains(message, "from :"+gitlabState(s.State))
}
