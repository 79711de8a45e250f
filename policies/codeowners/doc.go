// Package codeowners says whose approval a file needs by a CODEOWNERS file.
//
// In go the text of that file, the kind of forge by whose rules it is written, and paths; out come logins and teams. The three kinds
// write paths differently: GitHub as in .gitignore, where the last line that fits counts; GitLab so within sections, each of which
// counts; Gitea and Forgejo as regular expressions, all of which count. The package reads no file and asks no forge.
package codeowners
