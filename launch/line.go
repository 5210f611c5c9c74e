package launch

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// Variable holds, in processes that Job starts, where they can reach it: a word that only they know, and addresses.
const Variable = "TRIAX_LAUNCH"

// A Line is a connection that a process holds to the Job that started it. Nothing goes over it but who the process is, and at its end a word of farewell: a
// line that ends without one is a process that died. Launchers that see one die end all others at once, and the MPICH family's does not know which was first.
type Line struct{ conn net.Conn }

const farewell = "bye"

// Call opens the line of a rank, and returns nil where no Job started this process or none of its addresses can be reached: nothing else depends on it.
func Call(ctx context.Context, rank int) *Line {
	word, addresses, ok := strings.Cut(os.Getenv(Variable), "@")
	if !ok {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	for _, a := range strings.Split(addresses, ",") {
		conn, err := (&net.Dialer{Timeout: callFor}).DialContext(ctx, "tcp", a)
		if err != nil {
			continue
		}
		l := &Line{conn}
		l.say(word, fmt.Sprint(rank), fmt.Sprint(os.Getpid()), host)
		if conn.SetReadDeadline(time.Now().Add(callFor)) == nil {
			if answer, err := bufio.NewReader(conn).ReadString('\n'); err == nil && answer == word+"\n" { // else somebody else listens there
				return l
			}
		}
		conn.Close()
	}
	return nil
}

const callFor = time.Second

// Place tells the rank's place in the mesh.
func (l *Line) Place(where string) { l.say(strings.Fields(where)...) }

// Close ends the line of a process that is about to end by itself, well or not.
func (l *Line) Close() {
	l.say(farewell)
	if l != nil {
		l.conn.Close()
	}
}

func (l *Line) say(words ...string) {
	if l != nil {
		fmt.Fprintln(l.conn, strings.Join(words, " ")) // a job that is gone needs no news
	}
}

// exchange is where the lines end.
type exchange struct {
	listener net.Listener
	word     string
	heard    *Heard
}

func openExchange(heard *Heard) (*exchange, error) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	e := &exchange{l, rand.Text(), heard}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go e.listen(conn)
		}
	}()
	return e, nil
}

func (e *exchange) close() { e.listener.Close() }

// variable is what processes are told: addresses that other hosts may know first, this host's own last.
func (e *exchange) variable() string {
	_, port, err := net.SplitHostPort(e.listener.Addr().String())
	if err != nil {
		return ""
	}
	var all, own []string
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range addresses {
		ip, ok := a.(*net.IPNet)
		switch {
		case !ok || ip.IP.IsLinkLocalUnicast():
		case ip.IP.IsLoopback():
			own = append(own, net.JoinHostPort(ip.IP.String(), port))
		default:
			all = append(all, net.JoinHostPort(ip.IP.String(), port))
		}
	}
	return Variable + "=" + e.word + "@" + strings.Join(append(all, own...), ",")
}

// listen follows one process's line to its end.
func (e *exchange) listen(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	var p process
	if !lines.Scan() {
		return
	}
	var word string
	if n, _ := fmt.Sscan(lines.Text(), &word, &p.rank, &p.pid, &p.host); n != 4 || word != e.word {
		return
	}
	fmt.Fprintln(conn, word)
	e.heard.called(p)
	for lines.Scan() {
		if lines.Text() == farewell {
			return
		}
		p.place = lines.Text()
		e.heard.called(p)
	}
	e.heard.died(p)
}
