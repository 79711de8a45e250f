package forge

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// dialect is how one kind of forge wants a status.
type dialect struct {
	// place finds a repository by its server and the two or more parts of its path; false
	// if the address has another form.
	place func(host *url.URL, parts []string) (place, bool)
	// form is what an address must do, for messages.
	form string
	// auth is the header that authenticates. Errors: ErrProvider.
	auth func(secret map[string][]byte) (key, value string, err error)
	// headers go along with each status.
	headers map[string]string
	// body is what is posted.
	body func(s Status) any
	// links reports whether a status can link to an address, which may be empty. One that
	// cannot links to its commit. Nil: all can.
	links func(target string) bool
	// refused is why a status may be malformed to the forge, for messages.
	refused string
	// accepts reports whether a refusal means that all is well.
	accepts func(s Status, code int, message string) bool
	// signIn are the codes of the page that a token gets which is not known.
	signIn []int
	// silent says that a status which is taken is answered with nothing.
	silent bool
}

// place is a repository on a forge.
type place struct {
	// before and after are the address that takes statuses, around the commit's hash.
	before, after string
	// page is the address that shows a commit, less its hash. It is needed for links.
	page string
}

// often is why most forges refuse a status.
const often = "a commit takes so many statuses of a context and no more, and the token may not set those of others"

// dialects by Provider type.
var dialects = map[string]dialect{
	"github": {
		place: func(host *url.URL, parts []string) (place, bool) {
			if strings.EqualFold(host.Host, "github.com") {
				return ownedPlace("https://api.github.com", parts)
			}
			return ownedPlace(host.String()+"/api/v3", parts)
		},
		form: ownedForm, auth: tokenAs("Authorization", "Bearer "), body: plainBody, refused: often,
	},
	"gitea": {
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
		// Without it a status may be taken for a request that a page has a browser make.
		headers: map[string]string{"X-Atlassian-Token": "no-check"}, silent: true,
	},
	"azuredevops": {
		place: azurePlace, form: "be https://dev.azure.com/<organization>/<project>/_git/<repository>, or https://<host>/<collection>/<project>/_git/<repository>",
		auth: azureAuth, body: azureBody, refused: often,
		// It asks not to be sent to where people sign in; some answers are that page still.
		headers: map[string]string{"X-TFS-FedAuthRedirect": "Suppress"}, signIn: []int{http.StatusNonAuthoritativeInfo, http.StatusFound},
	},
}

const ownedForm = "name an owner and a repository"

// ownedPlace is that of a repository which belongs to an owner.
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

// tokenAs authenticates by a header with the token after a prefix.
func tokenAs(key, prefix string) func(map[string][]byte) (string, string, error) {
	return func(secret map[string][]byte) (string, string, error) {
		token, err := tokenOf(secret)
		return key, prefix + token, err
	}
}

func plainBody(s Status) any {
	return without(map[string]string{"state": string(s.State), "context": s.Context, "description": s.Description, "target_url": s.TargetURL})
}

// without drops empty fields.
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

// sameState accepts GitLab's refusal to set a state that is set already.
func sameState(s Status, code int, message string) bool {
	return code == http.StatusBadRequest && strings.Contains(message, "Cannot transition status") &&
		strings.Contains(message, "from :"+gitlabState(s.State))
}
