package forge

import (
	"crypto/sha1" //nolint:gosec // names a status, and keeps nothing safe
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// badLink explains a refused status in messages: Bitbucket requires a link with
// every status.
const badLink = "Bitbucket does not take every link: check where statuses lead (serve --status-url)"

// bitbucketPlace returns the API addresses of a repository on Bitbucket Cloud,
// which has one host.
func bitbucketPlace(host *url.URL, parts []string) (place, bool) {
	repository := escape(parts)
	return place{
		before: "https://api.bitbucket.org/2.0/repositories/" + repository + "/commit/", after: "/statuses/build",
		page: "https://bitbucket.org/" + repository + "/commits/",
	}, strings.EqualFold(host.Host, "bitbucket.org") && len(parts) == 2
}

// dataCenterPlace returns the API addresses of a repository on a Bitbucket Data
// Center server, which may be served below a path.
func dataCenterPlace(host *url.URL, parts []string) (place, bool) {
	above, project, repository, found := cutDataCenter(parts)
	if !found {
		return place{}, false
	}
	base, names := host.String(), []string{"projects", project, "repos", repository}
	if len(above) > 0 {
		base += "/" + escape(above)
	}
	return place{
		before: base + "/rest/api/latest/" + escape(names) + "/commits/", after: "/builds",
		page: base + "/" + escape(names) + "/commits/",
	}, true
}

// cutDataCenter splits the path of a repository, given as a clone address or as
// the address of its page. The project of a user is named ~user.
func cutDataCenter(parts []string) (above []string, project, repository string, found bool) {
	n := len(parts)
	if n >= 4 && parts[n-2] == "repos" {
		switch parts[n-4] {
		case "projects":
			return parts[:n-4], parts[n-3], parts[n-1], true
		case "users":
			return parts[:n-4], "~" + parts[n-3], parts[n-1], true
		}
	}
	if n >= 3 && parts[n-3] == "scm" {
		return parts[:n-3], parts[n-2], parts[n-1], true
	}
	return nil, "", "", false
}

// bitbucketAuth authenticates with a token, with username and password, or with
// both as <user>:<password> in the key token.
func bitbucketAuth(secret map[string][]byte) (key, value string, err error) {
	token := strings.TrimSpace(string(secret["token"]))
	user, password := entry(secret, "username"), entry(secret, "password")
	switch {
	case strings.Contains(token, ":"):
		user, password, _ = strings.Cut(token, ":")
		if user == "" || password == "" {
			return "", "", fmt.Errorf("%w: the key token of the Secret must be a token, or <user>:<password>", ErrProvider)
		}
	case token != "":
		return "Authorization", "Bearer " + token, nil
	case user == "" || password == "":
		return "", "", fmt.Errorf("%w: the Secret has neither the key token nor username with password", ErrProvider)
	case strings.Contains(user, ":"):
		return "", "", fmt.Errorf("%w: the key username of the Secret must not contain ':'", ErrProvider)
	}
	return "Authorization", basic(user, password), nil
}

// entry returns the value of a key of a Secret without trailing line breaks,
// which values read from files often have.
func entry(secret map[string][]byte, key string) string {
	return strings.TrimRight(string(secret[key]), "\r\n")
}

// basic returns the value of an Authorization header with a user name and a
// password.
func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func bitbucketBody(s Status) any {
	return without(bitbucketFields(s))
}

// dataCenterBody also sets parent to the context, which is the name under which
// Data Center requires a build for merging.
func dataCenterBody(s Status) any {
	fields := bitbucketFields(s)
	fields["parent"] = s.Context
	return without(fields)
}

// bitbucketFields returns the fields of a status. Its key is limited to 40
// characters, so it is the SHA-1 of the context: truncated contexts with a common
// beginning would share a key.
func bitbucketFields(s Status) map[string]string {
	sum := sha1.Sum([]byte(s.Context)) //nolint:gosec // as above
	state := map[State]string{Pending: "INPROGRESS", Success: "SUCCESSFUL", Failure: "FAILED"}[s.State]
	return map[string]string{"key": hex.EncodeToString(sum[:]), "state": state, "name": s.Context, "description": s.Description, "url": s.TargetURL}
}

// bitbucketLinks reports whether Bitbucket Cloud accepts a link: it refuses host
// names without a dot, such as those of a local network.
func bitbucketLinks(target string) bool {
	u, err := url.Parse(target)
	return err == nil && strings.ContainsAny(u.Hostname(), ".:")
}
