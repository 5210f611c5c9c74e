// A library with NCCL's calls for ranks that are threads of one process: memory is the host's, and a stream is a thread that does its operations one
// after another. It is stricter than the real one where that is silent: calls that do not fit together, use of a communicator
// whose last operation the library is still busy with, and two threads at once on one communicator are errors here.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <limits.h>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace {

enum { ok = 0, internal_error = 3, invalid_argument = 4, invalid_usage = 5, in_progress = 7 };

thread_local char last_error[512];

int fault(int code, const char* text) {
  snprintf(last_error, sizeof last_error, "%s", text);
  return code;
}

// Queue does tasks one after another, in a thread.
struct Queue {
  std::mutex m;
  std::condition_variable cv;
  std::deque<std::function<void()>> tasks;
  bool closing = false;
  std::thread thread;

  Queue() : thread([this] { run(); }) {}
  ~Queue() {
    {
      std::lock_guard<std::mutex> l(m);
      closing = true;
    }
    cv.notify_all();
    thread.join();
  }
  void give(std::function<void()> f) {
    std::lock_guard<std::mutex> l(m);
    tasks.push_back(std::move(f));
    cv.notify_all();
  }
  void run() {
    for (;;) {
      std::function<void()> f;
      {
        std::unique_lock<std::mutex> l(m);
        cv.wait(l, [this] { return closing || !tasks.empty(); });
        if (tasks.empty()) return;
        f = std::move(tasks.front());
        tasks.pop_front();
      }
      f();
    }
  }
};

struct Stream;
std::mutex streams_m;
std::set<void*> streams;  // ours; with any other, the caller waits until a group is done, as where work is done when it is given

struct Stream {
  std::shared_ptr<Queue> queue;
  std::atomic<long> given{0}, done{0};
};

// Op is an operation of a rank: what was called.
struct Op {
  int kind;  // as in the shim: all-reduce, reduce-scatter, all-gather, broadcast, send, recv
  const char* send;
  char* recv;
  size_t count;
  int type, reduction, peer, rank;
  bool over = false;
};

size_t size_of(int type) {
  switch (type) {
    case 0: case 1: return 1;
    case 2: case 3: case 7: return 4;
    case 4: case 5: case 8: return 8;
    case 6: case 9: return 2;
  }
  return 0;
}

float wide(uint16_t b) {
  uint32_t u = (uint32_t)b << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}

uint16_t narrow(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  if (f != f) return (uint16_t)(u >> 16 | 0x40);
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

template <class T>
void combine(T* into, const T* from, size_t n, int reduction) {
  for (size_t i = 0; i < n; i++)
    if (reduction == 0) into[i] += from[i];
    else if (from[i] > into[i] || from[i] != from[i]) into[i] = from[i];
}

// reduce adds n elements of every rank from an offset on, in the order of ranks.
std::vector<char> reduce(const std::vector<Op*>& ops, size_t offset, size_t n) {
  int type = ops[0]->type, reduction = ops[0]->reduction;
  size_t size = size_of(type);
  if (type == 9) {
    std::vector<float> sum(n), one(n);
    for (size_t r = 0; r < ops.size(); r++) {
      const uint16_t* from = (const uint16_t*)(ops[r]->send + offset * size);
      std::vector<float>& to = r ? one : sum;
      for (size_t i = 0; i < n; i++) to[i] = wide(from[i]);
      if (r) combine(sum.data(), one.data(), n, reduction);
    }
    std::vector<char> out(n * size);
    for (size_t i = 0; i < n; i++) ((uint16_t*)out.data())[i] = narrow(sum[i]);
    return out;
  }
  std::vector<char> out(ops[0]->send + offset * size, ops[0]->send + (offset + n) * size);
  for (size_t r = 1; r < ops.size(); r++) {
    const char* from = ops[r]->send + offset * size;
    if (type == 7) combine((float*)out.data(), (const float*)from, n, reduction);
    else if (type == 8) combine((double*)out.data(), (const double*)from, n, reduction);
    else combine((int32_t*)out.data(), (const int32_t*)from, n, reduction);
  }
  return out;
}

// run does a collective whose members are all there. Results are made before any is written: a rank's input may be another's output in place.
void run(const std::vector<Op*>& ops) {
  size_t n = ops[0]->count, bytes = n * size_of(ops[0]->type);
  std::vector<std::vector<char>> results(ops.size());
  switch (ops[0]->kind) {
    case 0: {
      std::vector<char> all = reduce(ops, 0, n);
      for (auto& r : results) r = all;
      break;
    }
    case 1:
      for (size_t r = 0; r < ops.size(); r++) results[r] = reduce(ops, r * n, n);
      break;
    case 2: {
      std::vector<char> all;
      for (Op* o : ops) all.insert(all.end(), o->send, o->send + bytes);
      for (auto& r : results) r = all;
      break;
    }
    case 3:
      for (auto& r : results) r.assign(ops[ops[0]->peer]->send, ops[ops[0]->peer]->send + bytes);
      break;
  }
  for (size_t r = 0; r < ops.size(); r++) memcpy(ops[r]->recv, results[r].data(), results[r].size());
}

struct Comm;

// World is what the ranks of a communicator share.
struct World {
  int n;
  std::mutex m;
  std::condition_variable cv;
  int joined = 0;
  std::map<long, std::vector<Op*>> meetings;                       // by number of the collective
  std::map<std::pair<int, int>, std::deque<Op*>> sends, receives;  // by sender and receiver
  struct Part {
    int color = 0, key = 0;
    Comm** to = nullptr;
    Comm* from = nullptr;
    bool there = false;
  };
  std::map<long, std::vector<Part>> splits;
  explicit World(int ranks) : n(ranks) {}

  // forget takes back operations that were given up: nobody may find them, or their memory.
  template <class F>
  void forget(F of) {
    for (auto& m : meetings)
      for (Op*& x : m.second)
        if (x && of(x)) x = nullptr;
    for (auto* lines : {&sends, &receives})
      for (auto& line : *lines)
        line.second.erase(std::remove_if(line.second.begin(), line.second.end(), of), line.second.end());
  }
};

struct Comm {
  std::shared_ptr<World> world;
  int rank;
  long collectives = 0, splits = 0;
  bool splitting = false;
  std::atomic<int> error{ok};
  std::atomic<bool> aborted{false};
  std::atomic<int> inside{0};      // threads that call with it
  std::atomic<int> looks{0};       // how often its state is still in progress, to try the caller's patience
  std::atomic<int> under_way{0};
  bool finalized = false;
};

// together tells whether all members have called the same.
bool together(const std::vector<Op*>& ops) {
  for (Op* o : ops)
    if (o->kind != ops[0]->kind || o->count != ops[0]->count || o->type != ops[0]->type || o->reduction != ops[0]->reduction || o->peer != ops[0]->peer) return false;
  return true;
}

// post makes an operation known to the others, with the world locked, and does what that completes. It returns an error's text.
const char* post(Comm* c, Op* o) {
  World& w = *c->world;
  if (o->kind < 4) {
    long number = c->collectives++;
    std::vector<Op*>& at = w.meetings[number];
    at.resize(w.n);
    at[c->rank] = o;
    for (Op* x : at)
      if (!x) return nullptr;
    if (!together(at)) return "the ranks call different collectives";
    run(at);
    for (Op* x : at) x->over = true;
    w.meetings.erase(number);
    w.cv.notify_all();
    return nullptr;
  }
  auto line = o->kind == 4 ? std::make_pair(c->rank, o->peer) : std::make_pair(o->peer, c->rank);
  std::deque<Op*>&s = w.sends[line], &r = w.receives[line];
  (o->kind == 4 ? s : r).push_back(o);
  while (!s.empty() && !r.empty()) {
    Op *from = s.front(), *to = r.front();
    s.pop_front();
    r.pop_front();
    if (from->count != to->count || from->type != to->type) return "a message and its receive differ";
    memcpy(to->recv, from->send, from->count * size_of(from->type));
    from->over = to->over = true;
    w.cv.notify_all();
  }
  return nullptr;
}

// Part is the operations of a group on one communicator and stream.
struct Part {
  Comm* comm;
  Stream* stream;
  std::vector<std::shared_ptr<Op>> ops;
};

// work posts a part's operations and waits until all are over.
void work(const Part& p) {
  World& w = *p.comm->world;
  std::unique_lock<std::mutex> l(w.m);
  for (auto& o : p.ops) {
    if (p.comm->aborted) break;
    if (const char* text = post(p.comm, o.get())) {
      fprintf(stderr, "fake nccl: rank %d: %s\n", p.comm->rank, text);
      p.comm->error = invalid_usage;
      w.cv.notify_all();
    }
  }
  w.cv.wait(l, [&] {
    if (p.comm->aborted || p.comm->error) return true;
    for (auto& o : p.ops)
      if (!o->over) return false;
    return true;
  });
  for (auto& o : p.ops)
    if (!o->over) w.forget([&](Op* x) { return x == o.get(); });
  p.comm->under_way--;
  w.cv.notify_all();
}

thread_local int depth = 0;
thread_local std::vector<Part> group;
thread_local int group_error = ok;

int end_group() {
  std::vector<Part> parts;
  parts.swap(group);
  int e = group_error;
  group_error = ok;
  if (e) {
    for (Part& p : parts) p.comm->inside--;
    return e;
  }
  std::vector<std::thread> own;
  bool pending = false;
  for (Part& p : parts) {
    p.comm->under_way++;
    if (p.stream) {
      p.comm->looks = 1;
      pending = true;
      p.stream->given++;
      p.stream->queue->give([p] {
        work(p);
        p.stream->done++;
      });
    } else {
      own.emplace_back([p] { work(p); });  // without a stream of ours, the caller waits
    }
  }
  for (auto& t : own) t.join();
  for (Part& p : parts) {
    p.comm->inside--;
    if (!p.stream && p.comm->error) return fault(p.comm->error, "operation failed");
  }
  return pending ? in_progress : ok;
}

bool ours(void* stream) {
  std::lock_guard<std::mutex> l(streams_m);
  return streams.count(stream);
}

int add(int kind, const void* send, void* recv, size_t count, int type, int reduction, int peer, Comm* c, Stream* s) {
  if (!ours(s)) s = nullptr;
  if (!depth) {
    depth++;
    int r = add(kind, send, recv, count, type, reduction, peer, c, s);
    if (r) group_error = r;
    depth--;
    return end_group();
  }
  int r = ok;
  bool first = true;
  for (Part& p : group) first = first && p.comm != c;
  if (first && c->inside++ > 0) r = fault(invalid_usage, "two threads call on one communicator at once");
  if (!r && c->world->joined < c->world->n) r = fault(invalid_argument, "the communicator is not ready");
  if (!r && first && c->looks > 0) r = fault(invalid_argument, "Attempt to use communicator before the previous operation returned ncclSuccess");
  if (!r && (c->splitting || c->finalized)) r = fault(invalid_argument, "the communicator is being split or ended");
  if (!r && c->error) r = fault(c->error, "the communicator has failed");
  if (!r && (!size_of(type) || peer < 0 || peer >= c->world->n)) r = fault(invalid_argument, "type or peer");
  auto o = std::make_shared<Op>();
  o->kind = kind, o->send = (const char*)send, o->recv = (char*)recv, o->count = count, o->type = type, o->reduction = reduction, o->peer = peer, o->rank = c->rank;
  if (r && !group_error) group_error = r;
  if (first && r) {
    c->inside--;
    return r;
  }
  for (Part& p : group)
    if (p.comm == c && p.stream == s) {
      p.ops.push_back(o);
      return r;
    }
  group.push_back(Part{c, s, {o}});
  return r;
}

std::mutex ids_m;
std::map<long, std::shared_ptr<World>> ids;
long next_id = 1;

struct Id {
  char bytes[128];
};

struct Config {
  size_t size;
  unsigned magic, version;
  int blocking, cga, min_ctas, max_ctas;
  const char* net;
  int share;
};

bool good(const Config* c) {
  return c && c->size >= sizeof(Config) && c->magic == 0xcafebeef && c->version >= 21400 && c->blocking == 0 && c->cga == INT_MIN && (c->max_ctas == INT_MIN || c->max_ctas > 0);
}

// split makes the communicators when all ranks have come; the world is locked.
void split(World& w, long number) {
  std::vector<World::Part>& parts = w.splits[number];
  for (auto& p : parts)
    if (!p.there) return;
  std::map<int, std::vector<int>> by_color;
  for (int r = 0; r < w.n; r++)
    if (parts[r].color >= 0) by_color[parts[r].color].push_back(r);
  for (auto& c : by_color) {
    std::vector<int>& ranks = c.second;
    std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return parts[a].key < parts[b].key; });
    auto world = std::make_shared<World>((int)ranks.size());
    world->joined = world->n;
    for (size_t i = 0; i < ranks.size(); i++) {
      Comm* made = new Comm();
      made->world = world;
      made->rank = (int)i;
      __atomic_store_n(parts[ranks[i]].to, made, __ATOMIC_RELEASE);
    }
  }
  for (auto& p : parts) p.from->splitting = false;
  w.splits.erase(number);
}

}  // namespace

extern "C" {

int ncclGetVersion(int* v) { return *v = 23003, ok; }

const char* ncclGetErrorString(int r) {
  static const char* text[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument", "invalid usage", "remote process exited or there was a network error", "NCCL operation in progress"};
  return r >= 0 && r < 8 ? text[r] : "unknown result code";
}

const char* ncclGetLastError(void*) { return last_error; }

int ncclGetUniqueId(Id* id) {
  std::lock_guard<std::mutex> l(ids_m);
  memset(id, 0, sizeof *id);
  snprintf(id->bytes, sizeof id->bytes, "fake");
  memcpy(id->bytes + 100, &next_id, sizeof next_id);  // late in the value: all of it must arrive
  ids[next_id++] = nullptr;
  return ok;
}

int ncclCommInitRankConfig(Comm** out, int n, Id id, int rank, Config* config) {
  if (!good(config)) return fault(invalid_argument, "config");
  if (n < 1 || rank < 0 || rank >= n) return fault(invalid_argument, "rank or size");
  long number;
  memcpy(&number, id.bytes + 100, sizeof number);
  std::lock_guard<std::mutex> l(ids_m);
  auto it = ids.find(number);
  if (strcmp(id.bytes, "fake") || it == ids.end()) return fault(invalid_argument, "no such unique id");
  if (!it->second) it->second = std::make_shared<World>(n);
  auto w = it->second;
  std::lock_guard<std::mutex> lw(w->m);
  if (w->n != n || w->joined == n) return fault(invalid_argument, "the ranks of this id do not agree on their number");
  w->joined++;
  *out = new Comm();
  (*out)->world = w;
  (*out)->rank = rank;
  (*out)->looks = 2;
  return in_progress;
}

int ncclCommSplit(Comm* c, int color, int key, Comm** to, Config* config) {
  if (!good(config)) return fault(invalid_argument, "config");
  std::lock_guard<std::mutex> l(c->world->m);
  if (c->world->joined < c->world->n || c->looks > 0 || c->splitting) return fault(invalid_argument, "the communicator is not ready");
  *to = nullptr;
  auto& parts = c->world->splits[c->splits];
  parts.resize(c->world->n);
  World::Part& p = parts[c->rank];
  p.color = color, p.key = key, p.to = to, p.from = c, p.there = true;
  c->splitting = true;
  split(*c->world, c->splits++);
  return in_progress;
}

int ncclCommGetAsyncError(Comm* c, int* state) {
  std::lock_guard<std::mutex> l(c->world->m);
  *state = c->error;
  if (!*state && (c->world->joined < c->world->n || c->splitting)) *state = in_progress;
  else if (!*state && c->looks > 0) c->looks--, *state = in_progress;
  else if (!*state && c->finalized && c->under_way > 0) *state = in_progress;
  return ok;
}

int ncclCommCount(Comm* c, int* n) { return *n = c->world->n, ok; }
int ncclCommUserRank(Comm* c, int* r) { return *r = c->rank, ok; }

int ncclCommFinalize(Comm* c) {
  c->finalized = true;
  return in_progress;
}

static int release(Comm* c) {
  {
    std::unique_lock<std::mutex> l(c->world->m);
    c->world->cv.wait(l, [&] { return c->under_way == 0; });
  }
  delete c;
  return ok;
}

int ncclCommDestroy(Comm* c) {
  if (!c->finalized) return fault(invalid_usage, "not finalized");
  return release(c);
}

int ncclCommAbort(Comm* c) {
  if (c->inside) return fault(invalid_usage, "aborted while a thread calls on it");
  {
    std::lock_guard<std::mutex> l(c->world->m);
    c->aborted = true;
    if (c->splitting)
      for (auto& s : c->world->splits)
        if (c->rank < (int)s.second.size() && s.second[c->rank].from == c) s.second[c->rank].there = false;
    c->world->forget([&](Op* x) { return x->rank == c->rank; });
    c->world->cv.notify_all();
  }
  std::thread([c] { release(c); }).detach();  // its operations may be in a queue behind another communicator's
  return ok;
}

int ncclGroupStart(void) { return depth++, ok; }
int ncclGroupEnd(void) { return --depth ? ok : end_group(); }

int ncclAllReduce(const void* s, void* r, size_t n, int t, int op, Comm* c, Stream* st) { return add(0, s, r, n, t, op, 0, c, st); }
int ncclReduceScatter(const void* s, void* r, size_t n, int t, int op, Comm* c, Stream* st) { return add(1, s, r, n, t, op, 0, c, st); }
int ncclAllGather(const void* s, void* r, size_t n, int t, Comm* c, Stream* st) { return add(2, s, r, n, t, 0, 0, c, st); }
int ncclBroadcast(const void* s, void* r, size_t n, int t, int root, Comm* c, Stream* st) { return add(3, s, r, n, t, 0, root, c, st); }
int ncclSend(const void* s, size_t n, int t, int peer, Comm* c, Stream* st) { return add(4, s, nullptr, n, t, 0, peer, c, st); }
int ncclRecv(void* r, size_t n, int t, int peer, Comm* c, Stream* st) { return add(5, nullptr, r, n, t, 0, peer, c, st); }

// What stands in for the driver: streams. With a device's number of 0 or more, all streams of that device share one thread, as on a device with no
// room for two kernels; -1 gives a stream a thread of its own.
void* fake_stream(int device) {
  static std::mutex m;
  static auto& queues = *new std::map<int, std::shared_ptr<Queue>>;  // never ended: a thread may be in it when the process ends
  std::lock_guard<std::mutex> l(m);
  Stream* s = new Stream();
  if (device < 0) {
    s->queue = std::make_shared<Queue>();
  } else {
    auto& q = queues[device];
    if (!q) q = std::make_shared<Queue>();
    s->queue = q;
  }
  std::lock_guard<std::mutex> ls(streams_m);
  streams.insert(s);
  return s;
}

long fake_given(void* stream) { return ((Stream*)stream)->given; }
long fake_done(void* stream) { return ((Stream*)stream)->done; }

void fake_end(void* stream) {
  {
    std::lock_guard<std::mutex> l(streams_m);
    streams.erase(stream);
  }
  delete (Stream*)stream;
}
}
